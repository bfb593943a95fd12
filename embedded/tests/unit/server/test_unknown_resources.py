"""Who may not ask for a kind learns that (403), whether or not the kind is there (404)."""

import json

import aiohttp
import pytest

from pocketkube.cluster import EmbeddedCluster, Options

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"


@pytest.fixture
async def asking(tmp_path):
    options = Options(runs_agents=False, runs_controllers=False, seed=1)
    cluster = EmbeddedCluster(tmp_path, options=options)
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    cluster.add([account | {"metadata": {"name": "nobody", "namespace": "default"}}])
    nobody = cluster.service_account_token("default", "nobody")
    async with cluster, aiohttp.ClientSession() as session:
        admin = json.loads(cluster.kubeconfig.read_text())["users"][0]["user"]["token"]

        async def ask(who: str, path: str):
            token = {"admin": admin, "nobody": nobody}[who]
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(cluster.inner_server + path, headers=headers) as answer:
                return answer.status, await answer.json()

        yield ask


async def test_who_has_no_rights_is_told_so(asking):
    status, found = await asking("nobody", JOBSETS)
    assert status == 403
    assert found["message"] == (
        "jobsets.jobset.x-k8s.io is forbidden: User "
        '"system:serviceaccount:default:nobody" cannot list resource "jobsets" in API group '
        '"jobset.x-k8s.io" in the namespace "default"'
    )


async def test_who_has_rights_learns_that_there_is_no_such_kind(asking):
    status, found = await asking("admin", JOBSETS)
    assert (status, found["message"]) == (404, "the server could not find the requested resource")
