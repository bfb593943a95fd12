"""Files that hold secrets are their owner's alone, from their first moment on."""

import os
import stat

import pytest

from pocketkube.access import secrets_in
from pocketkube.cluster import EmbeddedCluster, Options
from pocketkube.private_files import private_folder, write_private


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def cluster(folder):
    options = Options(durable=True, runs_agents=False, runs_controllers=False)
    return EmbeddedCluster(folder, options=options)


async def live(folder):
    """Start a cluster, write into it, and return the mode of each of its files meanwhile."""
    one = cluster(folder)
    async with one:
        one.add([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}])
        return {path.name: mode(path) for path in folder.rglob("*")}


async def test_all_that_a_cluster_keeps_is_private_whatever_the_umask(tmp_path, umask):
    folder = tmp_path / "cluster"
    modes = await live(folder)
    assert mode(folder) == 0o700
    assert {"state.journal", "secrets.json", "server.pem", "kubeconfig"} <= modes.keys()
    del modes["ca.crt"]
    assert set(modes.values()) == {0o600}


async def test_what_an_older_version_left_open_is_closed(tmp_path):
    folder = tmp_path / "cluster"
    await live(folder)
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    modes = await live(folder)
    del modes["ca.crt"]
    assert set(modes.values()) == {0o600}
    assert mode(folder) == 0o700


def test_a_folder_of_other_things_keeps_its_mode(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir(0o755)
    (folder / "notes").write_text("mine")
    folder.chmod(0o755)
    private_folder(folder, ("secrets.json",))
    assert mode(folder) == 0o755
    secrets_in(folder)
    assert mode(folder / "secrets.json") == 0o600


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "token"
    path.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
