"""Storage objects and pods' volumes, from JSON: what is read, and what is said of bad ones."""

import json

import pytest

from quorate.core.model import ClaimUse, LabelSelector, Requirement, SelectorTerm
from quorate.core.model.reasons import Reason
from quorate.core.model.storage import (
    Claim,
    ClaimRef,
    CSINode,
    StorageClass,
    Volume,
)
from quorate.dialects.base import Malformed
from quorate.shell.watch import storage
from tests.unit.shell.decoded import decode, manifest

GI = 2**30


def raw(spec=None, *, name="x", status=None, **more):
    meta = {"name": name, "namespace": "team", "uid": "u", "resourceVersion": "7"}
    meta |= more.pop("meta", {})
    return json.dumps({"metadata": meta, "spec": spec or {}, "status": status, **more}).encode()


def test_a_claim():
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "volumeName": "pv",
        "resources": {"requests": {"storage": "1500M"}},
        "selector": {"matchLabels": {"a": "b"}},
    }
    notes = {
        "pv.kubernetes.io/bind-completed": "yes",
        "volume.kubernetes.io/selected-node": "n1",
    }
    owners = [{"uid": "other"}, {"uid": "pod", "controller": True}]
    meta = {"annotations": notes, "ownerReferences": owners}
    assert storage.decode_claim(raw(spec, meta=meta, status={"phase": "Lost"})) == Claim(
        "team",
        "x",
        uid="u",
        storage_class="fast",
        size=1_500_000_000,
        access_modes=("ReadWriteOnce",),
        selector=LabelSelector((Requirement("a", "In", ("b",)),)),
        volume="pv",
        bound=True,
        selected_node="n1",
        lost=True,
        controller="pod",
    )


def test_an_old_claim_names_its_class_in_an_annotation():
    meta = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    claim = storage.decode_claim(raw({"storageClassName": "new"}, meta=meta))
    assert (claim.storage_class, claim.size, claim.selected_node) == ("old", None, None)


def test_a_volume():
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    spec = {
        "capacity": {"storage": "2Gi"},
        "csi": {"driver": "d", "volumeHandle": "h"},
        "claimRef": {"namespace": "team", "name": "c", "uid": "1"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    assert storage.decode_volume(raw(spec, status={"phase": "Bound"})) == Volume(
        "x",
        version="7",
        capacity=2 * GI,
        phase="Bound",
        claim=ClaimRef("team", "c", "1"),
        affinity=(SelectorTerm(expressions=(Requirement("zone", "In", ("a",)),)),),
        driver="d",
        handle="h",
    )


def test_the_smaller_objects():
    zones = {"key": "zone", "values": ["a", "b"]}
    assert storage.decode_storage_class(
        raw(
            provisioner="p",
            volumeBindingMode="WaitForFirstConsumer",
            allowedTopologies=[{"matchLabelExpressions": [zones]}, {}],
        )
    ) == StorageClass("x", "p", "WaitForFirstConsumer", ((("zone", ("a", "b")),), ()))
    drivers = [{"name": "b", "allocatable": {"count": 3}}, {"name": "a", "allocatable": {}}]
    assert storage.decode_csi_node(raw({"drivers": drivers})) == CSINode("x", (("b", 3),))


@pytest.mark.parametrize(
    ("decode", "body", "words"),
    [
        (
            storage.decode_claim,
            {"spec": {"resources": {"requests": {"storage": "much"}}}},
            "spec.resources.requests.storage: 'much' is not a quantity",
        ),
        (
            storage.decode_claim,
            {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
            "spec.selector: 'Near' is not an operator",
        ),
        (storage.decode_claim, {"spec": {"volumeName": 7}}, "spec.volumeName: Expected str"),
        (storage.decode_volume, {"spec": {"capacity": 7}}, "spec.capacity: Expected object"),
        (
            storage.decode_volume,
            {"spec": {"capacity": {"storage": "-1"}}},
            "spec.capacity.storage: '-1' is negative",
        ),
    ],
)
def test_a_bad_field_is_named_with_its_object(decode, body, words):
    with pytest.raises(Malformed) as caught:
        decode(json.dumps({"metadata": {"name": "x", "namespace": "team"}, **body}).encode())
    assert words in caught.value.message
    assert (caught.value.namespace, caught.value.name) == ("team", "x")


# Pods


def pod(*volumes, **more):
    return decode(manifest({"volumes": list(volumes), **more}))


def test_claims_are_in_the_pods_own_order_and_ephemeral_ones_have_its_name():
    found = pod(
        {"name": "b", "persistentVolumeClaim": {"claimName": "z"}},
        {"name": "t", "emptyDir": {}},
        {"name": "a", "ephemeral": {"volumeClaimTemplate": {}}},
    )
    assert found.claims == (ClaimUse("z"), ClaimUse("p-a", ephemeral=True))


@pytest.mark.parametrize(
    "disk",
    [
        "awsElasticBlockStore",
        "azureDisk",
        "cinder",
        "gcePersistentDisk",
        "iscsi",
        "portworxVolume",
        "rbd",
    ],
)
def test_a_pod_that_names_a_disk_itself_is_held_and_told_the_field_until_it_has_a_node(disk):
    volumes = ({"name": "t", "emptyDir": {}}, {"name": "d", disk: {"readOnly": True}})
    found = pod(*volumes)
    text = f"spec.volumes[1].{disk}: is not supported, use a persistentVolumeClaim"
    assert (found.defect, found.defect_reason) == (text, Reason.POD_INVALID)
    placed = pod(*volumes, nodeName="n1")
    assert (placed.defect, placed.warning) == ("", "")


def test_pods_with_claims_of_their_own_share_a_spec():
    one, other = (
        pod({"name": "d", "persistentVolumeClaim": {"claimName": name}}) for name in ("x", "y")
    )
    assert one.claims != other.claims
    assert one.spec == other.spec


def test_a_claim_without_a_name_is_a_defect_of_the_pod():
    assert pod({"name": "d", "persistentVolumeClaim": {}}).defect == (
        "spec.volumes[0].persistentVolumeClaim.claimName: must not be empty"
    )
