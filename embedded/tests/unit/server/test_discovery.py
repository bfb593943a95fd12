"""Discovery: what the real server said when it was recorded, and what CRDs add to it."""

import dataclasses
import json
import random
from typing import Any

import pytest

from pocketkube.errors import ApiError
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource, Subresource
from pocketkube.server.documents import discovery

DOCUMENT = Document.load()
CLIENT_GO = (
    f"{discovery.AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;"
    "as=APIGroupDiscoveryList,application/json"
)


def custom(group: str, version: str, plural: str, kind: str) -> Resource:
    verbs = {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
    own = {"group": group, "version": version}
    status = Subresource(
        name="status", verbs=frozenset({"get", "patch", "update"}), kind=kind, **own
    )
    scale = dataclasses.replace(
        status, name="scale", kind="Scale", group="autoscaling", version="v1"
    )
    return Resource(
        **own,
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        namespaced=True,
        verbs=frozenset(verbs),
        short_names=("sh",),
        subresources={"scale": scale, "status": status},
        shape=DOCUMENT.shape("io.k8s.api.core.v1.ConfigMap"),
        bucket=f"{plural}.{group}",
        crd=f"{plural}.{group}",
    )


def registry(*more: Resource) -> Registry:
    return Registry([*DOCUMENT.resources(), *more])


def get(path: str, accept: str = "application/json", *more: Resource) -> Any:
    found = discovery.page(path, accept, registry(*more), DOCUMENT)
    return None if found is None else json.loads(found[1])


@pytest.mark.parametrize(("path", "core"), [("/api", True), ("/apis", False)])
def test_the_aggregated_list_is_as_recorded(path, core):
    recorded = [group for group in DOCUMENT.groups if (not group["name"]) == core]
    items = get(path, CLIENT_GO)["items"]
    assert [item["versions"] for item in items] == [group["versions"] for group in recorded]
    names = [{"name": group["name"]} if group["name"] else {} for group in recorded]
    assert [item["metadata"] for item in items] == names


def test_the_aggregated_list_has_its_own_media_type():
    found = discovery.page("/apis", CLIENT_GO, registry(), DOCUMENT)
    assert found is not None
    assert found[0] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    plain = discovery.page("/apis", "*/*", registry(), DOCUMENT)
    assert plain is not None
    assert plain[0] == "application/json"


@pytest.mark.parametrize(
    ("accept", "aggregated"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        (f"application/json,{discovery.AGGREGATED}", False),
        ("application/vnd.kubernetes.protobuf,application/json", False),
        (CLIENT_GO.split(",", 1)[1], False),
        (CLIENT_GO, True),
        (discovery.AGGREGATED.replace(";", "; "), True),
    ],
)
def test_the_first_media_type_that_is_served_decides(accept, aggregated):
    assert discovery.wants_aggregated(accept) is aggregated


def test_who_takes_no_json_is_told():
    with pytest.raises(ApiError) as caught:
        get("/apis", "text/html")
    assert caught.value.code == 406


def test_plain_lists_name_subresources_after_their_resource():
    resources = get("/apis/apps/v1")["resources"]
    names = [resource["name"] for resource in resources]
    assert names[:4] == ["controllerrevisions", "daemonsets", "daemonsets/status", "deployments"]
    scale = next(resource for resource in resources if resource["name"] == "deployments/scale")
    assert (scale["group"], scale["version"], scale["singularName"]) == ("autoscaling", "v1", "")
    assert "group" not in resources[names.index("deployments/status")]


def test_groups_have_a_preferred_version():
    group = get("/apis/autoscaling")
    assert group["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}
    listed = [entry["name"] for entry in get("/apis")["groups"]]
    assert listed == [entry["name"] for entry in DOCUMENT.groups if entry["name"]]
    assert get("/api")["versions"] == ["v1"]


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/apps/v9", "/api/v9", "/apis/", "/other"])
def test_there_is_no_page_for_what_is_not_served(path):
    assert get(path.rstrip("/") + ("/x" if path == "/apis/" else "")) is None


def test_crds_come_after_the_built_in_groups_by_name_and_stability():
    versions = ["v1alpha1", "v1beta2", "v2", "v1", "v10", "v1beta1", "v11alpha2", "foo"]
    random.Random(1).shuffle(versions)
    more = [custom("zeta.io", version, "widgets", "Widget") for version in versions]
    more.append(custom("alpha.io", "v1", "things", "Thing"))
    items = get("/apis", CLIENT_GO, *more)["items"]
    assert [item["metadata"]["name"] for item in items[-2:]] == ["alpha.io", "zeta.io"]
    assert [version["version"] for version in items[-1]["versions"]] == [
        "v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo",
    ]  # fmt: skip


def test_crds_are_written_as_the_real_server_writes_them():
    more = custom("zeta.io", "v1", "widgets", "Widget")
    (resource,) = get("/apis", CLIENT_GO, more)["items"][-1]["versions"][0]["resources"]
    assert resource["responseKind"] == {"group": "zeta.io", "version": "v1", "kind": "Widget"}
    assert resource["verbs"][:2] == ["delete", "deletecollection"]
    assert [sub["subresource"] for sub in resource["subresources"]] == ["status", "scale"]
    plain = get("/apis/zeta.io/v1", "", more)["resources"]
    assert [entry["name"] for entry in plain] == ["widgets", "widgets/status", "widgets/scale"]


def test_the_root_lists_what_there_is():
    paths = get("/", "", custom("zeta.io", "v1", "widgets", "Widget"))["paths"]
    assert {"/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/zeta.io/v1", "/version"} <= {*paths}
    assert paths == sorted(paths)
