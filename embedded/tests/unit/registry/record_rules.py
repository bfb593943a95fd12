"""Ask a real API server what it makes of the objects in ``rules_cases``; write ``rules_recorded``.

``python -m embedded.tests.unit.registry.record_rules`` from the repository's root; needs the cached
binaries of tools.controlplane. Nothing is kept in the server but what an update or ``with`` needs.
"""

import copy
import http.client
import json
import ssl
import sys
from urllib.parse import urlsplit

from embedded.tests.unit.registry.rules_world import (
    CASES,
    NAMESPACE,
    RECORDED,
    cases_of,
    merged,
    normalised,
    path_of,
)
from tools.controlplane import ApiClient, ApiError, Cluster

_ANSWER = ("status", "reason", "message", "code", "details")


def main() -> int:
    """Record every file of cases, or those that are named."""
    wanted = sys.argv[1:] or sorted(path.stem for path in CASES.glob("*.yaml"))
    RECORDED.mkdir(exist_ok=True)
    with Cluster.start() as cluster:
        cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        _wait_for_account(cluster.client)
        for name in wanted:
            answers = {case["name"]: _answer(cluster.client, case) for case in cases_of(name)}
            text = json.dumps(answers, indent=1, sort_keys=True, ensure_ascii=False)
            (RECORDED / f"{name}.json").write_text(text + "\n")
            print(f"{name}: {len(answers)} answers")
    return 0


def _wait_for_account(client: ApiClient) -> None:
    for _ in range(1000):
        try:
            client.api("GET", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default")
        except ApiError:
            continue
        return


def _answer(client: ApiClient, case: dict) -> dict:
    made = [_create(client, helper) for helper in case.get("with", [])]
    try:
        if "change" not in case:
            return _said(client, "POST", path_of(case["object"]) + "?dryRun=All", case["object"])
        made.append(_create(client, case["object"]))
        _settled(client, made[-1])
        old = client.api("GET", made[-1])
        old["metadata"].pop("resourceVersion")
        new = merged(copy.deepcopy(old), case["change"])
        if case.get("subresource") == "status":
            new["status"] = case["change"]["status"]
            return _said(client, "PUT", made[-1] + "/status?dryRun=All", new)
        said = _said(client, "PUT", made[-1] + "?dryRun=All", new)
        if "metadata" in said.get("object", {}):
            said["object"].pop("status", None)
        return said
    finally:
        for path in reversed(made):
            _delete(client, path)


def _create(client: ApiClient, obj: dict) -> str:
    found = client.api("POST", path_of(obj), obj)
    return f"{path_of(obj)}/{found['metadata']['name']}"


def _settled(client: ApiClient, path: str) -> None:
    """Wait until no controller has anything more to write, so that none is in the way."""
    before = ""
    for _ in range(20):
        now = client.api("GET", path)["metadata"]["resourceVersion"]
        if now == before:
            return
        before = now


def _delete(client: ApiClient, path: str) -> None:
    options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    client.api("DELETE", path, options)
    for _ in range(2000):
        try:
            found = client.api("GET", path)
        except ApiError:
            return
        if found["metadata"].get("finalizers"):
            found["metadata"]["finalizers"] = []
            client.api("PUT", path, found)


def _said(client: ApiClient, method: str, path: str, obj: dict) -> dict:
    """Send a request and return the answer of either kind; the client keeps only its message."""
    address = urlsplit(client.server)
    connection = http.client.HTTPSConnection(
        address.hostname, address.port, context=ssl._create_unverified_context()
    )
    headers = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, json.dumps(obj), headers)
        response = connection.getresponse()
        body = json.loads(response.read())
    finally:
        connection.close()
    if response.status < http.client.BAD_REQUEST:
        return {"object": normalised(body)}
    return {key: body[key] for key in _ANSWER if key in body}


if __name__ == "__main__":
    sys.exit(main())
