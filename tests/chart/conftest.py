"""Helm, as a program that is given the chart of this repository."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import skip_or_fail
from tools.chart import CHART
from tools.controlplane.versions import binary, missing_binaries

NAMESPACE = "quorate-system"


class HelmError(Exception):
    """Helm refused; the text is what it said."""


class Helm:
    """Helm with folders of its own, so that nobody's settings or plugins count."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *args: str, kubeconfig: Path | None = None, timeout_s: float = 120) -> str:
        """Return what one call prints. Raises HelmError."""
        folders = {f"HELM_{one}_HOME": str(self.home / one) for one in ("CACHE", "CONFIG", "DATA")}
        config = str(kubeconfig or self.home / "no-kubeconfig")
        done = subprocess.run(
            [str(binary("helm")), *args],
            env={**os.environ, **folders, "KUBECONFIG": config},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        if done.returncode:
            raise HelmError(done.stderr)
        return done.stdout

    def render(self, *args: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the objects that the chart renders. Raises HelmError."""
        text = self.run("template", "quorate", str(CHART), *self.given(values), *args)
        return [one for one in yaml.safe_load_all(text) if one]

    def given(self, values: dict[str, Any] | None) -> Iterable[str]:
        """Write values to a file; give the options that name it, and the usual namespace."""
        file = self.home / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        return ("--namespace", NAMESPACE, "--values", str(file))


@pytest.fixture
def helm(tmp_path) -> Helm:
    if missing_binaries(["helm"]):
        skip_or_fail("helm is not built; make tools builds it")
    return Helm(tmp_path)
