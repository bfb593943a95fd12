"""Objects that client-go sends as protobuf are stored as a real API server stores them."""

import json

import pytest

from embedded.tests.clients.typed import COMMANDS, RECORDED, answer

ANSWERS = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_typed_create_is_stored_as_a_real_server_stores_it(kubectl, command):
    if " web " in command:
        kubectl("create", "deployment", "web", "--image=nginx:1")
    assert answer(kubectl, command) == ANSWERS[command]


def test_a_token_is_asked_for_in_protobuf_too(kubectl):
    token = kubectl("create", "token", "default", "--duration=10m")
    assert token.count(".") == 2
    said = kubectl("auth", "whoami", "-o", "json", f"--token={token}")
    assert kubectl.namespace in json.loads(said)["status"]["userInfo"]["username"]


def test_a_drain_evicts_in_protobuf(kubectl, cluster):
    made = cluster.create_nodes(["drained"])
    try:
        override = {"apiVersion": "v1", "spec": {"nodeName": made[0]}}
        kubectl("run", "p", "--image=x", f"--overrides={json.dumps(override)}")
        kubectl("drain", made[0], "--force", "--ignore-daemonsets", "--grace-period=0")
        assert "NotFound" in kubectl.refused("get", "pod", "p")
    finally:
        cluster.api("DELETE", f"/api/v1/nodes/{made[0]}")
