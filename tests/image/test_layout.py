"""The layout is valid, to us and to crane; the same inputs give the same image."""

import gzip
import hashlib
import io
import re
import subprocess
import tarfile
import tomllib
from contextlib import contextmanager

import pytest
import yaml

from quorate.cli.commands.manifests import render
from tests.conftest import skip_or_fail
from tests.paths import ROOT
from tools.controlplane.process import free_port
from tools.controlplane.versions import binary, missing_binaries
from tools.image import build
from tools.image.__main__ import push
from tools.image.building import CONFIG
from tools.image.debian import PACKAGES
from tools.testing import wait_for

pytestmark = pytest.mark.timeout(900)  # of a busy machine; a build takes half a minute of CPU
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def members(image):
    for layer in image.manifest["layers"]:
        with tarfile.open(fileobj=io.BytesIO(image.blob(layer))) as tar:
            yield from tar


@pytest.mark.explore
def test_two_builds_give_the_same_image(image, tmp_path):
    assert build(tmp_path / "again") == image.digest


def test_each_blob_is_what_its_descriptor_says(image):
    manifest, config = image.manifest, image.config
    assert image.index["manifests"][0]["digest"] == image.digest
    for one in (*image.index["manifests"], manifest["config"], *manifest["layers"]):
        data = image.blob(one)
        assert one["size"] == len(data)
        assert one["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    unpacked = [gzip.decompress(image.blob(one)) for one in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [
        f"sha256:{hashlib.sha256(data).hexdigest()}" for data in unpacked
    ]
    assert len(list((image.folder / "blobs" / "sha256").iterdir())) == 2 + len(unpacked)


def test_it_runs_as_no_root_and_with_the_arguments_of_the_deployment(image):
    """The Deployment names no user: the kubelet sees by the image's number that it is not root."""
    (deployment,) = [one for one in yaml.safe_load_all(render()) if one["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert [int(one) > 0 for one in image.config["config"]["User"].split(":")] == [True, True]
    assert "command" not in spec["containers"][0], "the image's own entry point takes the arguments"
    assert image.config["config"]["Entrypoint"] == ["/usr/local/bin/quorate"]


def test_all_files_are_roots_and_none_gives_more_rights(image):
    for one in members(image):
        assert (one.uid, one.gid, one.mtime) == (0, 0, 0), one.name
        assert not one.mode & 0o6000, f"{one.name} is setuid"
        assert one.issym() or one.name == "tmp" or not one.mode & 0o022, f"{one.name} is writable"


def test_no_name_of_this_machine_is_in_it(image):
    places = (str(ROOT).encode(), b"quorate-image-")
    for layer in image.manifest["layers"]:
        data = gzip.decompress(image.blob(layer))
        assert not [place for place in places if place in data]


def test_there_is_no_shell_no_pip_and_no_package_manager(image):
    names = {one.name for one in members(image)}
    programs = {name for name in names if re.match(r"usr/(local/)?s?bin/.", name)}
    assert programs == {"usr/bin/python3", "usr/bin/python3.11", "usr/local/bin/quorate"}
    assert not [name for name in names if "/pip/" in name]
    assert "etc/os-release" in names, "or scanners do not know whose packages these are"


def test_each_package_has_its_record_and_its_licence(image):
    names = {one.name: one.linkname for one in members(image)}
    found = {name.rpartition("/")[2] for name in names if "dpkg/status.d/" in name}
    assert found == set(PACKAGES)
    for package in found:
        # Some have the licence of another package, by a link.
        of = names[f"usr/share/doc/{package}"] or package
        assert f"usr/share/doc/{of}/copyright" in names


def test_what_is_installed_is_what_the_lock_names(image):
    lock = (ROOT / "requirements-image.lock").read_text()
    wanted = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)(?! ; sys_platform)(?= \\$)", lock))
    found = {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in re.findall(
            r"dist-packages/([\w.]+)-([\w.]+)\.dist-info/METADATA$",
            "\n".join(one.name for one in members(image)),
            re.M,
        )
    }
    assert found.pop("quorate-scheduler")
    assert found == wanted


@contextmanager
def registry(folder):
    port = free_port()
    command = [binary("crane"), "registry", "serve", "--address", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*map(str, command), "--disk", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.explore
def test_crane_pushes_validates_and_pulls_it(image, tmp_path):
    if missing_binaries(["crane"]):
        skip_or_fail("crane is not built; make tools builds it")

    def crane(*args):
        command = [str(binary("crane")), *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    with registry(tmp_path) as host:
        wait_for(lambda: crane("catalog", host).returncode == 0, "the registry answers")
        name = f"{host}/quorate:test"
        assert push(image.folder, name) == f"{host}/quorate@{image.digest}"
        assert crane("digest", name).stdout.strip() == image.digest
        valid = crane("validate", "--remote", name)
        assert valid.returncode == 0, valid.stderr
        assert "PASS" in valid.stdout + valid.stderr
        assert crane("pull", "--format=oci", name, tmp_path / "back").returncode == 0
        blobs = {path.name for path in (tmp_path / "back" / "blobs" / "sha256").iterdir()}
        assert blobs == {path.name for path in (image.folder / "blobs" / "sha256").iterdir()}


def dockerfile(word):
    """Return what the image's last lines with a word say, read as a list."""
    return [yaml.safe_load(one) for one in re.findall(rf"(?m)^{word} (.*)$", DOCKERFILE)][-1]


def test_the_dockerfile_makes_the_same_of_the_same_lock():
    assert "-r /requirements-image.lock" in DOCKERFILE
    assert dockerfile("USER") == CONFIG["User"]


def test_the_dockerfile_starts_the_same_program_by_a_name_that_is_on_the_path():
    """``kubectl exec ... quorate record`` found no such program, and the folder in which
    ``python -m quorate`` was called came first among those that modules are read from."""
    (entry,) = dockerfile("ENTRYPOINT")
    assert entry == CONFIG["Entrypoint"][0].rpartition("/")[2]
    assert dockerfile("CMD") == CONFIG["Cmd"]
    variables = dict(one.split("=", 1) for one in dockerfile("ENV").split())
    assert variables["PATH"].startswith("/opt/quorate/bin:")
    assert variables["PYTHONSAFEPATH"] == "1"
    assert "PYTHONPATH" not in variables


def test_the_dockerfile_fetches_nothing_without_its_hash():
    """What builds the wheel was fetched as pip saw fit."""
    calls = re.findall(r"(?:RUN|&&) (pip .*?)(?=&&|\n[A-Z])", DOCKERFILE, re.DOTALL)
    assert len(calls) == 4
    for one in calls:
        fetches = " install " in one and "--no-index" not in one
        assert ("--require-hashes" in one) == fetches, one
        assert fetches or "--no-deps" in one, one
    assert "--no-build-isolation" in DOCKERFILE


def test_what_builds_the_wheel_is_locked():
    (builder,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert f"{builder} \\\n    --hash=" in (ROOT / "requirements-build.lock").read_text()
