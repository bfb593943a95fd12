"""A namespace is of an organization or of the control plane, and stays so.

The words and the table are those of the documentation (contracts.md section 5).
"""

import pytest

from tests.e2e.cks.conftest import DOCUMENTED, SYSTEM, labels_of, namespace
from tools.harness.cks import ORG

pytestmark = [pytest.mark.core, pytest.mark.real]


def path(name: str) -> str:
    return f"/api/v1/namespaces/{name}"


@pytest.fixture
def own(tenants) -> str:
    """A namespace that Jane made, of her organization."""
    name = tenants.name()
    tenants.jane.kubectl("create", "namespace", name)
    return name


def test_who_makes_a_namespace_need_not_say_whose_it_is_and_may_change_and_delete_it(
    cluster, tenants, own
):
    assert labels_of(cluster, path(own))[ORG] == "acme"
    tenants.jane.kubectl("label", "namespace", own, "team=vision")
    tenants.jane.kubectl("annotate", "namespace", own, "note=mine")
    assert labels_of(cluster, path(own))["team"] == "vision"
    written = tenants.name()
    tenants.zed.kubectl("create", "-f", "-", manifest=namespace(written, "zeta"))
    assert labels_of(cluster, path(written))[ORG] == "zeta"
    tenants.jane.kubectl("delete", "namespace", own)
    assert not cluster.exists(path(own))


def test_namespaces_of_the_control_plane_are_shown_as_the_documentation_shows_them(tenants, own):
    shown = tenants.jane.kubectl("get", "namespaces", f"--selector={ORG}=control-plane")
    head, *rows = (line.split() for line in shown.splitlines())
    assert head == ["NAME", "STATUS", "AGE"]
    assert [row[:2] for row in rows] == [[name, "Active"] for name in SYSTEM]


@pytest.mark.parametrize("change", [f"{ORG}=zeta", f"{ORG}=control-plane", f"{ORG}-"])
def test_users_neither_change_nor_remove_the_label_and_the_platform_may(
    cluster, tenants, own, change
):
    before = labels_of(cluster, path(own))
    said = tenants.jane.refused("label", "--overwrite", "namespace", own, change)
    assert "(Forbidden)" in said
    assert DOCUMENTED in said
    assert ORG in said
    assert labels_of(cluster, path(own)) == before
    cluster.kubectl("label", "--overwrite", "namespace", own, change)
    assert labels_of(cluster, path(own)) != before


def test_a_namespace_that_nobody_owns_is_not_taken_by_labelling_it(cluster, tenants):
    name = tenants.name()
    cluster.kubectl("create", "namespace", name)
    assert DOCUMENTED in tenants.jane.refused("label", "namespace", name, f"{ORG}=acme")
    assert ORG not in labels_of(cluster, path(name))


@pytest.mark.parametrize("verb", [("label", "team=x"), ("delete",)], ids=["change", "delete"])
def test_a_namespace_of_others_is_neither_changed_nor_deleted(cluster, tenants, own, verb):
    word, *rest = verb
    before = labels_of(cluster, path(own))
    said = tenants.zed.refused(word, "namespace", own, *rest)
    assert "(Forbidden)" in said
    assert 'the namespace is of organization "acme". You are in zeta.' in said
    assert labels_of(cluster, path(own)) == before


def test_a_namespace_of_the_control_plane_is_the_platform_s(cluster, tenants):
    name = tenants.name()
    tenants.platform.kubectl("create", "-f", "-", manifest=namespace(name, "control-plane"))
    for call in (("label", "namespace", name, "team=x"), ("delete", "namespace", name)):
        said = tenants.jane.refused(*call)
        assert "(Forbidden)" in said
        assert "the namespace is of the control plane. You are in acme." in said
    other = namespace(tenants.name(), "control-plane")
    said = tenants.jane.refused("create", "-f", "-", manifest=other)
    assert "the namespace is of the control plane" in said
    cluster.kubectl("label", "namespace", name, "team=x")


def test_a_namespace_is_made_for_an_organization_of_one_s_own_only(cluster, tenants):
    name = tenants.name()
    said = tenants.jane.refused("create", "-f", "-", manifest=namespace(name, "zeta"))
    assert 'the namespace is of organization "zeta". You are in acme.' in said
    said = tenants.nobody.refused("create", "namespace", name)
    assert f"metadata.labels[{ORG}] is needed" in said
    assert 'You are in no organization: ask for a group "org:...".' in said
    assert not cluster.exists(path(name))


def test_who_is_in_two_organizations_says_for_which(cluster, tenants):
    name = tenants.name()
    assert "You are in acme, zeta." in tenants.ada.refused("create", "namespace", name)
    tenants.ada.kubectl("create", "-f", "-", manifest=namespace(name, "zeta"))
    assert labels_of(cluster, path(name))[ORG] == "zeta"


def test_an_organization_that_there_is_not_is_refused_to_the_platform_too(cluster, tenants):
    name = tenants.name()
    said = tenants.platform.refused("create", "-f", "-", manifest=namespace(name, "acne"))
    assert 'this cluster has no organization "acne"' in said
    tenants.platform.kubectl("create", "namespace", name)
    assert "acne" in tenants.platform.refused("label", "namespace", name, f"{ORG}=acne")
    assert ORG not in labels_of(cluster, path(name))
