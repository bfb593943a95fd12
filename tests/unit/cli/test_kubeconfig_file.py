"""A context in somebody's kubeconfig: what was there stays, and what is ours goes."""

import json
import os
import stat
import threading

import pytest
import yaml

from pocketkube.access import kubeconfig
from quorate.cli import kubeconfig_file
from quorate.cli.kubeconfig_file import KubeconfigFileError, add, check, remove

MINE = """\
# work
apiVersion: v1
kind: Config
x-of-a-tool: {until: 2024-01-01, port: 0123, on: yes}
preferences: &p {colors: true}
clusters:
- {name: prod, cluster: {server: "https://prod", extensions: [{name: e, extension: *p}]}}
users:
- name: me
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, args: ["-n"]}
contexts:
- name: prod
  context: {cluster: prod, user: me, namespace: team}
current-context: prod
"""


@pytest.fixture
def ours(tmp_path):
    ca = tmp_path / "ca.crt"
    ca.write_text("CA")
    return json.loads(kubeconfig("https://127.0.0.1:7", ca, "s3cret", name="quorate"))


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "kube"
    folder.mkdir()
    path = folder / "config"
    path.write_text(MINE)
    path.chmod(0o600)
    return path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(path, key):
    return [entry["name"] for entry in yaml.safe_load(path.read_text())[key] or ()]


def test_a_context_comes_and_goes_and_the_file_is_byte_for_byte_what_it_was(file, ours):
    added = add(file, ours)
    found = yaml.safe_load(file.read_text())
    assert (added.context, found["current-context"]) == ("quorate", "quorate")
    assert found["clusters"][1]["cluster"] == ours["clusters"][0]["cluster"]
    assert found["users"][1] == {"name": "quorate", "user": {"token": "s3cret"}}
    assert found["contexts"][1]["context"] == {"cluster": "quorate", "user": "quorate"}
    before = yaml.safe_load(MINE)
    for key, old in before.items():
        if key != "current-context":
            assert (found[key][:1] if isinstance(old, list) else found[key]) == old
    assert "0123" in file.read_text(), "no scalar is read as something else and written anew"
    remove(added)
    assert file.read_text() == MINE
    assert os.listdir(file.parent) == ["config"]


def test_what_others_wrote_meanwhile_stays(file, ours):
    added = add(file, ours)
    found = yaml.safe_load(file.read_text())
    found["contexts"].append({"name": "new", "context": {"cluster": "prod", "user": "me"}})
    found["current-context"] = "new"
    found["contexts"][1]["context"]["namespace"] = "team"  # kubectl config set-context --current
    file.write_text(yaml.safe_dump(found))
    remove(added)
    left = yaml.safe_load(file.read_text())
    assert [one["name"] for one in left["contexts"]] == ["prod", "new"]
    assert left["current-context"] == "new"
    assert [len(left[key]) for key in ("clusters", "users")] == [1, 1]


def test_entries_that_somebody_made_of_ours_stay(file, ours):
    added = add(file, ours)
    found = yaml.safe_load(file.read_text())
    found["clusters"][1]["cluster"]["server"] = "https://elsewhere"
    found["users"][1]["user"] = {"token": "another"}
    found["contexts"][1]["context"]["user"] = "me"
    file.write_text(yaml.safe_dump(found))
    remove(added)
    assert names(file, "clusters") == ["prod", "quorate"]
    assert names(file, "users") == ["me", "quorate"]
    assert names(file, "contexts") == ["prod", "quorate"]


def test_names_that_are_taken_are_left_to_whom_they_belong(file, ours):
    first, second = add(file, ours), add(file, ours)
    assert (first.context, second.context) == ("quorate", "quorate-2")
    remove(first)
    assert names(file, "contexts") == ["prod", "quorate-2"]
    assert yaml.safe_load(file.read_text())["current-context"] == "quorate-2"
    remove(second)
    assert names(file, "contexts") == ["prod"]


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_new_file_is_private_and_goes_with_its_only_context(tmp_path, ours, umask):
    path = tmp_path / "new" / "deep" / "config"
    before = os.umask(umask)
    try:
        check(path)
        assert not path.parent.exists(), "to check changes nothing"
        added = add(path, ours)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    remove(added)
    assert not path.exists()


def test_an_empty_file_stays_one(file, ours):
    file.write_text("")
    remove(add(file, ours))
    assert file.read_text() == ""


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o600, 0o600), (0o400, 0o400)])
def test_a_mode_is_never_widened_and_a_token_never_open(file, ours, before, after):
    file.chmod(before)
    remove(add(file, ours))
    assert mode(file) == after


def test_a_symbolic_link_stays_one(tmp_path, file, ours):
    link = tmp_path / "link"
    link.symlink_to(file)
    added = add(link, ours)
    assert link.is_symlink()
    assert names(file, "contexts") == ["prod", "quorate"]
    remove(added)
    assert link.is_symlink()
    assert file.read_text() == MINE


def test_a_json_kubeconfig_is_one_too(file, ours):
    file.write_text(json.dumps(yaml.safe_load(MINE), default=str))
    added = add(file, ours)
    assert names(file, "contexts") == ["prod", "quorate"]
    remove(added)
    assert json.loads(file.read_text())["current-context"] == "prod"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("kind: Pod\napiVersion: v1\n", 'kind is "Pod"'),
        ("just text\n", "no fields"),
        ("- a\n- b\n", "no fields"),
        ("a: 1\n", "none of the fields"),
        ("kind: Config\nclusters: 3\n", "clusters is no list"),
        ("kind: Config\nusers: [x]\n", "an entry of users"),
        ("kind: Config\n---\nkind: Config\n", "document"),
        ("a: [\n", "no kubeconfig"),
        ("[" * 100_000, "no kubeconfig"),
        (b"\xff\xfe\x00", "no kubeconfig"),
        (b"\x1b[2Jkind: Config\n", "no kubeconfig"),
    ],
)
def test_what_is_no_kubeconfig_is_named_and_left_alone(file, ours, content, why):
    data = content if isinstance(content, bytes) else content.encode()
    file.write_bytes(data)
    for use in (check, lambda path: add(path, ours)):
        with pytest.raises(KubeconfigFileError, match=why) as caught:
            use(file)
        assert str(file) in str(caught.value)
    assert file.read_bytes() == data
    assert os.listdir(file.parent) == ["config"]


def test_a_folder_is_no_kubeconfig(tmp_path):
    with pytest.raises(KubeconfigFileError, match="is no file"):
        check(tmp_path)


def test_kubectls_lock_is_waited_for_and_then_named(file, ours, monkeypatch):
    monkeypatch.setattr(kubeconfig_file, "_LOCK_TRY_S", 0.001)
    lock = file.with_name("config.lock")
    lock.touch()
    with pytest.raises(KubeconfigFileError, match=r"config\.lock"):
        add(file, ours)
    assert lock.exists(), "it is another's"
    assert file.read_text() == MINE
    lock.unlink()
    add(file, ours)
    assert not lock.exists()


def test_many_who_write_at_a_time_lose_nothing(file, ours):
    added = []
    threads = [threading.Thread(target=lambda: added.append(add(file, ours))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names(file, "contexts")) == 7
    for one in added:
        remove(one)
    assert names(file, "contexts") == ["prod"]
