"""The image, built once, and its root file system unpacked as a container runtime does it."""

import json
import os
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import skip_or_fail
from tools.image import build
from tools.image.building import ImageError


class Image(NamedTuple):
    """A layout, and what it says."""

    folder: Path
    digest: str

    def blob(self, descriptor: dict[str, Any]) -> bytes:
        """Return what a descriptor names."""
        return (self.folder / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()

    @property
    def index(self) -> dict[str, Any]:
        return json.loads((self.folder / "index.json").read_text())

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads(self.blob(self.index["manifests"][0]))

    @property
    def config(self) -> dict[str, Any]:
        return json.loads(self.blob(self.manifest["config"]))


@pytest.fixture(scope="session")
def image(tmp_path_factory) -> Image:
    folder = tmp_path_factory.mktemp("image") / "layout"
    try:
        return Image(folder, build(folder))
    except ImageError as error:
        skip_or_fail(str(error))
        raise


@pytest.fixture(scope="session")
def root(image, tmp_path_factory) -> Path:
    """The root file system."""
    if os.geteuid() != 0:
        skip_or_fail("only root may enter another root file system")
    folder = tmp_path_factory.mktemp("root")
    folder.chmod(0o755)
    for layer in image.manifest["layers"]:
        with tarfile.open(image.folder / "blobs" / layer["digest"].replace(":", "/")) as tar:
            tar.extractall(folder, filter="tar")
    return folder
