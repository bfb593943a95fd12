"""Kubeconfigs: kubectl and quorate go to the same server, as the same user, in one namespace.

Both are given the same files, variables and flags, and both make the same request; the servers note
who asked for what. Where kubectl refuses or finds no server, quorate has to refuse in words.
"""

import base64
import os
import sys

import pytest

from tests.clients.two_clusters import World
from tools.controlplane.versions import binary
from tools.testing import skip_or_fail


@pytest.fixture
def world(tmp_path, monkeypatch):
    if not binary("kubectl").is_file():
        skip_or_fail("kubectl is not built; make controlplane builds it")
    for name in list(os.environ):
        if "proxy" in name.lower() or name.startswith(("KUBERNETES_", "KUBE")):
            monkeypatch.delenv(name)
    folder = tmp_path / "folder"
    folder.mkdir()
    made = World(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("KUBECONFIG", str(folder / "config"))
    yield made
    for server in made.servers:
        server.close()


def bearer(token):
    return [("authorization", f"Bearer {token}")]


BASIC = base64.b64encode(b"me:secret").decode()
USERS = {
    "token": ({"token": "t"}, bearer("t"), None),
    "token file": ({"tokenFile": "token"}, bearer("of-a-file"), None),
    "token and its file": ({"tokenFile": "token", "token": "t"}, bearer("of-a-file"), None),
    "token, and no file": ({"tokenFile": "none", "token": "t"}, bearer("t"), None),
    "password": (
        {"username": "me", "password": "secret"},
        [("authorization", f"Basic {BASIC}")],
        None,
    ),
    "certificate": ({"client-certificate": "user.crt", "client-key": "user.key"}, [], "4D"),
    "acts as another": (
        {
            "token": "t",
            "as": "ada",
            "as-uid": "7",
            "as-groups": ["one", "two, three"],
            "as-user-extra": {"Some/Key": ["x", "y"]},
        },
        [
            *bearer("t"),
            ("impersonate-extra-some%2fkey", "x"),
            ("impersonate-extra-some%2fkey", "y"),
            ("impersonate-group", "one"),
            ("impersonate-group", "two, three"),
            ("impersonate-uid", "7"),
            ("impersonate-user", "ada"),
        ],
        None,
    ),
    "fields that are null": ({"token": "t", "exec": None, "username": None}, bearer("t"), None),
    "fields that nobody knows": ({"token": "t", "colour": {"blue": 1}}, bearer("t"), None),
}


@pytest.mark.parametrize("user", USERS)
async def test_both_are_the_same_user(world, user):
    fields, headers, serial = USERS[user]
    world.simple(fields, namespace="team")
    assert await world.agree() == ("a", "/api/v1/namespaces/team/pods", serial, headers)


async def test_data_in_the_kubeconfig_is_as_good_as_files(world):
    def data(raw):
        return base64.b64encode(raw).decode()

    authority = data(world.authority.file.read_bytes())
    cluster = world.cluster(
        1, **{"certificate-authority": None, "certificate-authority-data": authority}
    )
    user = {"client-certificate-data": data(world.certificate), "client-key-data": data(world.key)}
    world.simple(user, cluster)
    assert await world.agree() == ("b", "/api/v1/namespaces/default/pods", "4D", [])


@pytest.mark.parametrize(
    "change",
    [
        {"certificate-authority": None, "insecure-skip-tls-verify": True},
        {"tls-server-name": "api.example"},
        {"extensions": [{"name": "x", "extension": {"a": 1}}]},
    ],
)
async def test_both_reach_the_server(world, change):
    world.simple({"token": "t"}, world.cluster(0, **change))
    assert (await world.agree())[0] == "a"


async def test_both_keep_the_path_of_a_server(world):
    world.simple({"token": "t"}, world.cluster(0, server=f"{world.servers[0].url}/clusters/x/"))
    assert (await world.agree())[1] == "/clusters/x/api/v1/namespaces/default/pods"


PLUGIN = """
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
cluster = asked["spec"].get("cluster", {})
token = "-".join([os.environ["WHO"], sys.argv[1], asked["apiVersion"].rpartition("/")[2],
                  cluster.get("server", "").rpartition(":")[0].replace("/", ""),
                  str(len(cluster.get("certificate-authority-data", ""))),
                  str(cluster.get("config")), str(asked["spec"]["interactive"])])
print(json.dumps({"kind": "ExecCredential", "apiVersion": asked["apiVersion"],
                  "status": {"token": token.replace(" ", "")}}))
"""


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("is_told", [True, False])
async def test_both_run_the_plugin_and_tell_it_the_same(world, version, is_told):
    (world.folder / "bin").mkdir()
    plugin = world.folder / "bin" / "plugin"
    plugin.write_text(f"#!{sys.executable}\n{PLUGIN}")
    plugin.chmod(0o755)
    entry = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": "./bin/plugin",
        "args": ["arg"],
        "env": [{"name": "WHO", "value": "me"}],
        "provideClusterInfo": is_told,
        "interactiveMode": "IfAvailable",
    }
    told = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    world.simple({"exec": entry}, world.cluster(0, extensions=[told]))
    _, _, _, headers = await world.agree()
    assert headers[0][1].startswith(f"Bearer me-arg-{version}-{'https' if is_told else ''}")


async def test_both_prefer_a_token_to_a_plugin(world):
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "none"}
    world.simple({"token": "t", "exec": {**plugin, "interactiveMode": "Never"}})
    assert (await world.agree())[3] == bearer("t")


def in_parts(world):
    """Three files that need one another, and disagree."""
    world.write("one", contexts=[("x", {"cluster": "c", "user": "u", "namespace": "first"})])
    (world.folder / "sub").mkdir()
    for name in ("ca.crt", "user.crt", "user.key"):
        (world.folder / "sub" / name).write_bytes((world.folder / name).read_bytes())
    (world.folder / "sub" / "token").write_text("of-the-folder")
    world.write(
        "sub/two",
        clusters=[("c", world.cluster(1))],
        users=[("u", {"tokenFile": "token"})],
        contexts=[("x", {"cluster": "d", "user": "v", "namespace": "second"}), ("y", {})],
        current="x",
    )
    world.write(
        "three",
        clusters=[("c", world.cluster(0)), ("d", world.cluster(0))],
        users=[("u", {"token": "third", "as": "ada"}), ("v", {"token": "v"})],
        contexts=[("y", {"cluster": "d", "user": "v"}), ("z", {"cluster": "d", "user": "v"})],
        current="z",
    )


def listed(world, *names):
    return os.pathsep.join(str(world.folder / name) if name else "" for name in names)


@pytest.mark.parametrize(
    ("names", "context", "expected"),
    [
        (("one", "sub/two", "three"), None, ("b", "first", "of-the-folder")),
        (("three", "sub/two", "one"), None, ("a", "default", "v")),
        (("three", "one", "sub/two"), "x", None),  # an "as" of the third is not merged into "u"
        (("sub/two", "three"), None, ("a", "second", "v")),
        (("none", "", "sub/two", "also-none", "three"), "z", ("a", "default", "v")),
        (("sub/two", "sub/two", "three"), None, ("a", "second", "v")),
        (("one", "sub/two", "three"), "y", ""),  # the first "y" names nothing
        (("one",), "x", ""),
        (("one", "sub/two"), "nowhere", ""),
        (("none", "also-none"), None, ""),
    ],
)
async def test_both_merge_files_alike(world, monkeypatch, names, context, expected):
    in_parts(world)
    monkeypatch.setenv("KUBECONFIG", listed(world, *names))
    found = await world.agree(context=context)
    if expected is None:
        assert found[3] == [*bearer("third"), ("impersonate-user", "ada")]
    elif not expected:
        assert found == ""
    else:
        server, namespace, token = expected
        assert found == (server, f"/api/v1/namespaces/{namespace}/pods", None, bearer(token))


async def test_a_file_that_is_named_comes_before_the_environment_and_is_one_file(
    world, monkeypatch
):
    in_parts(world)
    world.write(
        "odd:name",
        clusters=[("c", world.cluster(0))],
        users=[("u", {"token": "odd"})],
        contexts=[("x", {"cluster": "c", "user": "u"})],
        current="x",
    )
    monkeypatch.setenv("KUBECONFIG", listed(world, "sub/two", "three"))
    assert (await world.agree(file=world.folder / "odd:name"))[3] == bearer("odd")
    assert await world.agree(file=world.folder / "none") == ""


async def test_without_a_name_both_read_the_file_in_the_home(world, monkeypatch):
    monkeypatch.delenv("KUBECONFIG")
    world.simple({"token": "t"})
    (world.folder / ".kube").mkdir(exist_ok=True)
    text = (world.folder / "config").read_text().replace("ca.crt", "../ca.crt")
    (world.folder / ".kube" / "config").write_text(text)
    assert (await world.agree())[3] == bearer("t")


REFUSED = {
    "no context is current": {"current": ""},
    "no such context": {"current": "other"},
    "no such user": {"users": []},
    "no such cluster": {"clusters": []},
    "another kind": {"kind": "Pod"},
    "a name twice": {"users": [("u", {"token": "a"}), ("u", {"token": "b"})]},
    "token that is a number": {"users": [("u", {"token": 12})]},
    "token and password": {"users": [("u", {"token": "t", "username": "a", "password": "b"})]},
    "certificate without key": {"users": [("u", {"client-certificate": "user.crt"})]},
    "certificate twice": {
        "users": [
            (
                "u",
                {"client-certificate": "user.crt", "client-key": "user.key"}
                | {"client-certificate-data": base64.b64encode(b"x").decode()},
            )
        ]
    },
    "no such certificate": {
        "users": [("u", {"client-certificate": "none.crt", "client-key": "none.key"})]
    },
    "no such token file": {"users": [("u", {"tokenFile": "none"})]},
    "auth provider": {"users": [("u", {"auth-provider": {"name": "gcp"}})]},
    "plugin of no version": {"users": [("u", {"exec": {"command": "true"}})]},
    "plugin without a command": {
        "users": [("u", {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}})]
    },
    "plugin without a mode": {
        "users": [
            ("u", {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}})
        ]
    },
}


@pytest.mark.parametrize("mistake", REFUSED)
async def test_both_refuse(world, mistake):
    parts = {
        "clusters": [("c", world.cluster(0))],
        "users": [("u", {"token": "t"})],
        "contexts": [("main", {"cluster": "c", "user": "u"})],
        "current": "main",
    }
    world.write("config", **{**parts, **REFUSED[mistake]})
    assert await world.agree() == ""


@pytest.mark.parametrize(
    "change",
    [
        {"server": ""},
        {"server": "ftp://h"},
        {"insecure-skip-tls-verify": True},  # and an authority
        {"certificate-authority": "none.crt"},
        {"certificate-authority-data": base64.b64encode(b"x").decode()},
        {"certificate-authority": None, "certificate-authority-data": "no base64!"},
        {"proxy-url": "gopher://127.0.0.1:1"},
    ],
)
async def test_both_refuse_the_cluster(world, change):
    world.simple({"token": "t"}, world.cluster(0, **change))
    assert await world.agree() == ""
