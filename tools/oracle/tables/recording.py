"""Run the scheduler's table tests with recorders, and keep what they wrote.

In: Go and the module cache. Out: fixtures, read from the cache or recorded anew (a few minutes).
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.controlplane import golang
from tools.controlplane.build import FLAGS, run
from tools.controlplane.cluster import say
from tools.controlplane.process import lock
from tools.oracle import build as oracle_build
from tools.oracle.tables import fixtures
from tools.oracle.tables.fixtures import Fixture
from tools.oracle.tables.hooking import copy_with_hooks

HERE = Path(__file__).parent
PLUGINS = (
    "defaultpreemption",
    "dynamicresources",
    "imagelocality",
    "interpodaffinity",
    "nodeaffinity",
    "nodedeclaredfeatures",
    "nodename",
    "nodeports",
    "noderesources",
    "nodeunschedulable",
    "nodevolumelimits",
    "podtopologyspread",
    "tainttoleration",
    "volumebinding",
    "volumerestrictions",
    "volumezone",
)
SKIPPED = "^(TestBindAPIUpdate|TestBindPodVolumes|TestCheckBindings.*)$"
"""Of volumebinding: they call no method of the plugin, and wait 3 s for what may take longer."""


class TablesError(RuntimeError):
    """The scheduler's tests did not run; the text holds their last words."""


def upstream_tables(progress: Callable[[str], None] = say) -> list[Fixture]:
    """Give every case of the scheduler's table tests that could be converted."""
    recorded = _recorded()
    if not recorded.is_dir():
        with lock(oracle_build.cache_dir(), progress):
            if not recorded.is_dir():
                _record(recorded, progress)
    return [fixture for path in sorted(recorded.glob("*.jsonl")) for fixture in fixtures.read(path)]


def _recorded() -> Path:
    digest = hashlib.sha256()
    modules = [oracle_build.MODULE_DIR / name for name in ("go.mod", "go.sum")]
    for path in [*modules, *sorted(HERE.glob("recorder/*.go")), HERE / "hooking.py"]:
        digest.update(path.read_bytes())
    return oracle_build.cache_dir() / f"tables-{digest.hexdigest()[:16]}"


def _record(target: Path, progress: Callable[[str], None]) -> None:
    go = golang.find_go(progress)
    environment = golang.environment(GOFLAGS="-mod=readonly")
    source = _module_folder(go, environment) / "pkg/scheduler/framework/plugins"
    with tempfile.TemporaryDirectory(prefix="quorate-tables-") as name:
        module, output = Path(name) / "module", Path(name) / "recorded"
        shutil.copytree(HERE / "recorder", module / "tables" / "recorder")
        for file in ("go.mod", "go.sum"):
            shutil.copy(oracle_build.MODULE_DIR / file, module)
        for plugin in PLUGINS:
            hooks = copy_with_hooks(source / plugin, module / "plugins" / plugin)
            if not hooks:
                raise TablesError(
                    f"{plugin} has no method that we know: has its signature changed?"
                )
        _run_tests(go, module, {**environment, "ORACLE_TABLES": str(output)}, output, progress)
        silent = [name for name in PLUGINS if not (output / f"{name}.jsonl").is_file()]
        if silent:
            raise TablesError(f"tests that have called no method of their plugin: {silent}")
        shutil.copytree(output, target.with_suffix(".partial"), dirs_exist_ok=True)
    target.with_suffix(".partial").rename(target)


def _run_tests(
    go: Path,
    module: Path,
    environment: dict[str, str],
    output: Path,
    progress: Callable[[str], None],
) -> None:
    title = f"table tests of {len(PLUGINS)} plugins"
    progress(f"running the {title} (minutes the first time)")
    command = [str(go), "test", *FLAGS, "-count=1", "-vet=off", f"-skip={SKIPPED}", "./plugins/..."]
    output.mkdir()
    run(command, module, environment, title, progress)


def _module_folder(go: Path, environment: dict[str, str]) -> Path:
    command = [str(go), "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]
    done = subprocess.run(
        command,
        cwd=oracle_build.MODULE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not done.stdout.strip():
        raise TablesError(f"go list -m k8s.io/kubernetes: {done.stderr.strip()}")
    return Path(done.stdout.strip())
