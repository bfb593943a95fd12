"""Pages of docs/users, typed as they stand there into a cluster of their own.

A block without a language holds commands; where lines of it begin with ``$ ``, the lines after
each are what it prints. ```` ```yaml title="FILE" ```` is a file that its reader saves.

The cluster has neither network nor kubelets, so three things are done here instead: the address of
a release is its file, what a container would run is a process, and containers end when the page
waits for that.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.paths import ROOT
from tools.controlplane import Access
from tools.controlplane.releases import manifests
from tools.controlplane.versions import OPERATORS, binary
from tools.harness.operators import (
    MpiOperator,
    Operator,
    TrainingOperator,
    Volcano,
    VolcanoAdmission,
)
from tools.harness.scheduler import Quorate
from tools.testing import wait_for

_OVERLAY = "manifests/overlays/standalone"
_INSTALLER = "installer/volcano-development.yaml"
_VOLCANO = f"https://raw.githubusercontent.com/volcano-sh/volcano/{OPERATORS[Volcano.name]}"
RELEASES = {
    f"{_VOLCANO}/{_INSTALLER}": manifests(Volcano.name) / Path(_INSTALLER).name,
    **{
        f"github.com/kubeflow/{name}.git/{_OVERLAY}?ref={OPERATORS[name]}": (
            manifests(name).parent / _OVERLAY
        )
        for name in (TrainingOperator.name, MpiOperator.name)
    },
}
"""Where a page says that a release is, and where it is here."""
QUORATE = "quorate-system/quorate"
CONTAINERS = {
    f"{kind.namespace}/{kind.account}": kind
    for kind in (TrainingOperator, MpiOperator, Volcano, VolcanoAdmission)
}
"""What the Deployments of operators run."""
_BLOCK = re.compile(r'^```(?:yaml title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_LOOKS = "kubectl get", "quorate"
_ENDS = re.compile(r"kubectl wait --for=\S*(?:Succeeded|Completed)\S* \w+/(\S+)")
_VARY = {
    r"\b\d+[smh](?:\d+[sm])?\b": "AGE",
    r"(?<=-launcher-)[a-z0-9]{5}\b": "NAME",
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": "UID",
    r" +": " ",
}
"""What differs from one time to the next, and what stands for it."""


class Step(NamedTuple):
    """A file that is saved, or a command with what it prints, where the page says that."""

    file: str
    text: str
    prints: str | None


def blocks(page: str) -> Iterator[list[Step]]:
    """Yield what each block of a page has its reader do."""
    text = (ROOT / "docs" / "users" / page).read_text(encoding="utf-8")
    for file, block in _BLOCK.findall(text):
        if file:
            yield [Step(file, block, None)]
        elif block.startswith("$ "):
            parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
            yield [Step("", *part.split("\n", 1)) for part in parts]
        else:
            yield [Step("", block, None)]


def same(text: str) -> str:
    """Return what is the same each time of what a command prints."""
    for pattern, stands in _VARY.items():
        text = re.sub(pattern, stands, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


class Reader:
    """Somebody who types a page, and the machines of the cluster that it is typed into."""

    def __init__(self, cluster: Access, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._last: dict[str, Any] = {}
        self._operators: dict[str, Operator] = {}
        self._quorate: Quorate | None = None
        programs = Path(sys.executable).parent, binary("kubectl").parent
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "KUBECONFIG": str(cluster.kubeconfig),
            "PATH": os.pathsep.join((*map(str, programs), os.environ["PATH"])),
        }

    def read(self, page: str) -> None:
        """Do all that a page says; fail where something else is printed than stands there."""
        self._follow()
        for block in blocks(page):
            try:
                for step in block:
                    self._do(step)
                self._follow()
            except (AssertionError, subprocess.TimeoutExpired) as error:
                for one in (*self._operators.values(), self._quorate):
                    error.add_note(one.told() if one else "quorate does not run")
                raise

    def _do(self, step: Step) -> None:
        if step.file:
            (self._folder / step.file).write_text(step.text, encoding="utf-8")
            return
        if ended := _ENDS.search(step.text):
            self._end(ended[1])
        if step.prints is None:
            code, printed = self._type(step.text)
            assert code == 0, f"$ {step.text}\n{printed}"
            return
        wanted, printed = same(step.prints), ""

        def is_printed() -> bool:
            nonlocal printed
            _, printed = self._type(step.text)
            return same(printed) == wanted

        try:
            if step.text.startswith(_LOOKS):
                wait_for(is_printed, "it prints that")
            else:
                assert is_printed()
        except AssertionError as error:
            raise AssertionError(f"$ {step.text}\n{step.prints}\nprinted:\n{printed}") from error

    def _type(self, command: str) -> tuple[int, str]:
        """Return its exit code and what a terminal would show."""
        for address, file in RELEASES.items():
            command = command.replace(address, str(file))
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout

    def _end(self, job: str) -> None:
        """Let the containers of a job end well, where it has a launcher that one's."""
        pods = self._cluster.api("GET", "/api/v1/namespaces/default/pods")["items"]
        names = [one["metadata"]["name"] for one in pods]
        mine = [one for one in names if one.startswith(f"{job}-")]
        ended = [one for one in mine if "-launcher-" in one] or mine
        self._cluster.kubectl("annotate", "pods", *ended, "quorate.dev/complete-after=0s")

    def _follow(self) -> None:
        """Run what the Deployments say now."""
        for one in self._cluster.api("GET", "/apis/apps/v1/deployments")["items"]:
            name = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
            template = one["spec"]["template"]
            if self._last.get(name) == template:
                continue
            self._last[name] = template
            if name == QUORATE:
                self._schedule()
            elif name in CONTAINERS:
                self._operate(name, template)

    def _operate(self, name: str, template: dict[str, Any]) -> None:
        if name not in self._operators:
            self._operators[name] = CONTAINERS[name](self._cluster, self._folder)
        container = template["spec"]["containers"][0]
        words = [*container.get("command", ()), *container.get("args", ())]
        self._operators[name].start(*(one for one in words if one.startswith("--gang-schedul")))

    def _schedule(self) -> None:
        """Start quorate with its ConfigMap's configuration, instead of the one that runs."""
        self._stop_quorate()
        path = "/api/v1/namespaces/quorate-system/configmaps/quorate"
        text = self._cluster.api("GET", path)["data"]["config.yaml"]
        self._quorate = Quorate(self._cluster, self._folder, yaml.safe_load(text)).start()

    def _stop_quorate(self) -> None:
        """Stop it; it may not have complained."""
        if self._quorate is not None:
            assert self._quorate.stop() == 0
            assert not self._quorate.complaints()

    def stop(self) -> None:
        """Stop all that runs."""
        for one in self._operators.values():
            one.kill()
        self._stop_quorate()
