"""Files that hold secrets are their owner's alone, from their first moment on."""

import os
import stat
import threading

import pytest

from pocketkube.access import secrets_in
from pocketkube.cluster import EmbeddedCluster, Options
from pocketkube.private_files import private_folder, tighten, write_private
from tools.controlplane import credentials


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
    assert {"state.sqlite3", "secrets.json", "server.pem", "kubeconfig"} <= modes.keys()
    assert any(name.endswith("-wal") for name in modes)
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


def test_a_folder_that_all_may_write_to_keeps_its_mode(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    private_folder(folder, ())
    assert mode(folder) == 0o1777


def test_nobody_meets_a_wide_or_half_written_file(tmp_path):
    """Looked at from beside while it is written again and again over one that was open to all."""
    path = tmp_path / "token"
    path.write_text("old")
    path.chmod(0o666)
    done, seen = threading.Event(), set()

    def look():
        while not done.is_set():
            for one in tmp_path.iterdir():
                try:
                    seen.add((one == path and one.read_text()[-3:], mode(one)))
                except FileNotFoundError:
                    continue

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(50):
        write_private(path, "x" * 100_000 + "new")
    done.set()
    watcher.join()
    assert {found for found in seen if found[1] != 0o600} <= {("old", 0o666)}
    assert {text for text, _ in seen if text} <= {"old", "new"}
    assert mode(path) == 0o600


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


def test_tighten_never_widens(tmp_path):
    path = tmp_path / "x"
    tighten(path)
    path.touch()
    for before, after in ((0o644, 0o600), (0o400, 0o400), (0o660, 0o600)):
        path.chmod(before)
        tighten(path)
        assert mode(path) == after


def test_the_real_control_planes_keys_are_private(tmp_path, umask):
    made = credentials.prepare(tmp_path)
    made.write_kubeconfig("admin", "https://127.0.0.1:1", "t")
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}
    made.token_file.chmod(0o644)
    credentials.prepare(tmp_path)
    assert mode(made.token_file) == 0o600
