"""Ask a real API server about ``custom_cases``, and write its answers to ``custom_recorded``.

For the tests of custom resources and of Tables. Run, in the folder of the project::

    python -m embedded.tests.unit.schema.record_custom
"""

import datetime
import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tools.controlplane import Cluster
from tools.controlplane.client import ApiError

HERE = Path(__file__).parent
CASES, RECORDED = HERE / "custom_cases", HERE / "custom_recorded"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def main() -> None:
    with Cluster.start(nodes=1) as cluster:
        write("values.json", values(cluster, read("values.json")))
        write("definitions.json", definitions(cluster, read("definitions.json")))
        write("tables.json", tables(cluster, read("tables.json")))


def read(name: str) -> Any:
    return json.loads((CASES / name).read_text())


def write(name: str, answers: Any) -> None:
    text = json.dumps(answers, indent=1, ensure_ascii=False)
    (RECORDED / name).write_text(text + "\n")


def raw(cluster: Cluster, method: str, path: str, body: Any = None, accept: str = "") -> Any:
    """Send a request; give the answer, also that of an error."""
    headers = {
        "Authorization": f"Bearer {cluster.admin_token}",
        "Content-Type": "application/json",
        "Accept": accept or "application/json",
    }
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(cluster.server + path, data, headers, method=method)
    context = ssl.create_default_context(cafile=cluster.ca)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def values(cluster: Cluster, cases: dict[str, Any]) -> list[Any]:
    """Say for each spec what it becomes, or what is wrong with it."""
    cluster.api("POST", DEFINITIONS, cases["definition"])
    time.sleep(2)
    found = []
    for spec in cases["specs"]:
        obj = {"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "t"}, "spec": spec}
        answer = raw(cluster, "POST", "/apis/ex.com/v1/namespaces/default/foos?dryRun=All", obj)
        causes = answer.get("details", {}).get("causes", [])
        found.append({"spec": spec, "becomes": answer.get("spec"), "causes": causes})
    return found


def definitions(cluster: Cluster, cases: dict[str, Any]) -> dict[str, Any]:
    """Say for each definition what its spec becomes, or what is wrong with it."""
    found = {}
    for name, definition in cases.items():
        answer = raw(cluster, "POST", f"{DEFINITIONS}?dryRun=All", definition)
        causes = answer.get("details", {}).get("causes", [])
        found[name] = {"definition": definition, "becomes": answer.get("spec"), "causes": causes}
    return found


def tables(cluster: Cluster, cases: list[Any]) -> list[Any]:
    """Create objects, and say what their kinds' Tables show of them."""
    paths: list[str] = []
    for case in cases:
        path, obj = case["path"], case["object"]
        try:
            cluster.api("POST", path, obj)
            one = f"{path}/{obj['metadata']['name']}"
            if case.get("status") is not None:
                merge = "application/merge-patch+json"
                status = {"status": case["status"]}
                cluster.api("PATCH", f"{one}/status", status, content_type=merge)
            if case.get("delete"):
                cluster.api("DELETE", one)
        except ApiError as error:
            raise SystemExit(f"{error}") from error
        if obj.get("kind") == "CustomResourceDefinition" or path == "/api/v1/namespaces":
            time.sleep(2)
        paths += [] if path in paths else [path]
    time.sleep(2)
    return [table(cluster, path) for path in paths]


def table(cluster: Cluster, path: str) -> Any:
    answer = raw(cluster, "GET", f"{path}?includeObject=Object", accept=TABLE)
    for row in answer["rows"]:
        for field in ("managedFields", "uid", "resourceVersion"):
            row["object"]["metadata"].pop(field, None)
    return {
        "path": path,
        "now_s": datetime.datetime.now(datetime.UTC).timestamp(),
        "rows": answer["rows"],
    }


if __name__ == "__main__":
    main()
