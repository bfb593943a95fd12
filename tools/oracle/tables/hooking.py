"""Copy a plugin's package with its tests, and put the recorder around the plugin's methods.

In: the folder of a plugin in the Go module cache. Out: the same package elsewhere, in which each
method that the framework calls has a new name, and a method of the old name calls it and tells
``recorder``. Tests need no change: they call the old names.
"""

import re
from pathlib import Path

# What the framework's interfaces have in kube-scheduler 1.36: these parameters and others; results.
_CONTEXT = "ctx context.Context, state fwk.CycleState, pod *v1.Pod"
_STATUS = {"status": "*fwk.Status"}
_METHODS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "PreFilter": ({"nodes": "[]fwk.NodeInfo"}, {"found": "*fwk.PreFilterResult", **_STATUS}),
    "Filter": ({"node": "fwk.NodeInfo"}, _STATUS),
    "PreScore": ({"nodes": "[]fwk.NodeInfo"}, _STATUS),
    "Score": ({"node": "fwk.NodeInfo"}, {"score": "int64", **_STATUS}),
    "NormalizeScore": ({"scores": "fwk.NodeScoreList"}, _STATUS),
    "SelectVictimsOnNode": (
        {"node": "fwk.NodeInfo", "pdbs": "[]*policy.PodDisruptionBudget"},
        {"victims": "[]*v1.Pod", "violations": "int", **_STATUS},
    ),
}
_METHOD = re.compile(
    rf"^func \((?P<name>\w+) (?P<type>\*\w+)\) (?P<method>{'|'.join(_METHODS)})\(", re.MULTILINE
)
_CONSTRUCTOR = re.compile(
    r"^func (?P<name>New\w*)\((?P<parameters>[^()]*fwk\.Handle[^()]*)\) "
    r"\((?P<result>\*?[\w.]+), error\) \{",
    re.MULTILINE,
)
_IMPORTS = {
    "context.": '"context"',
    "policy.": 'policy "k8s.io/api/policy/v1"',
    "v1.": 'v1 "k8s.io/api/core/v1"',
    "runtime.": '"k8s.io/apimachinery/pkg/runtime"',
    "fwk.": 'fwk "k8s.io/kube-scheduler/framework"',
    "feature.": '"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"',
    "recorder.": '"quorate.dev/oracle/tables/recorder"',
}


def copy_with_hooks(package: Path, target: Path) -> int:
    """Copy ``package`` to ``target`` with hooks; give how many methods have one."""
    target.mkdir(parents=True)
    wrappers: list[str] = []
    for path in sorted(package.glob("*.go")):
        text = path.read_text(encoding="utf-8")
        if not path.name.endswith("_test.go"):
            text = _CONSTRUCTOR.sub(lambda found: _hook_constructor(found, wrappers), text)
            text = _METHOD.sub(lambda found: _hook_method(found, wrappers), text)
        (target / path.name).write_text(text, encoding="utf-8")
    if wrappers:
        (target / "hooks.go").write_text(_hooks_file(package.name, wrappers), encoding="utf-8")
    return len(wrappers)


def _hook_method(found: re.Match[str], wrappers: list[str]) -> str:
    method = found["method"]
    parameters, results = _METHODS[method]
    declared = ", ".join(f"{name} {kind}" for name, kind in parameters.items())
    passed, returned = ", ".join(parameters), ", ".join(results)
    wrappers.append(
        f"func (pl {found['type']}) {method}({_CONTEXT}, {declared})"
        f" ({', '.join(results.values())}) {{\n"
        f"\t{returned} := pl.unhooked{method}(ctx, state, pod, {passed})\n"
        f"\trecorder.{method}(pl, state, pod, {passed}, {returned})\n"
        f"\treturn {returned}\n}}\n"
    )
    return f"func ({found['name']} {found['type']}) unhooked{method}("


def _hook_constructor(found: re.Match[str], wrappers: list[str]) -> str:
    kinds = [parameter.split(maxsplit=1)[1] for parameter in found["parameters"].split(", ")]
    parameters = ", ".join(f"p{i} {kind}" for i, kind in enumerate(kinds))
    names = ", ".join(f"p{i}" for i in range(len(kinds)))
    wrappers.append(
        f"func {found['name']}({parameters}) ({found['result']}, error) {{\n"
        f"\tplugin, err := unhooked{found['name']}({names})\n"
        f"\tif err == nil {{\n\t\trecorder.Made(plugin, {names})\n\t}}\n"
        f"\treturn plugin, err\n}}\n"
    )
    return found[0].replace(f"func {found['name']}(", f"func unhooked{found['name']}(", 1)


def _hooks_file(package: str, wrappers: list[str]) -> str:
    body = "\n".join(wrappers)
    used = [line for name, line in _IMPORTS.items() if re.search(rf"\b{re.escape(name)}", body)]
    lines = "\n".join(f"\t{line}" for line in used)
    return f"package {package}\n\nimport (\n{lines}\n)\n\n{body}"
