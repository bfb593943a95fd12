"""Volcano's queues are made as soon as they can be, and what stands in the way is said once."""

import asyncio

import pytest
from structlog.testing import capture_logs

from quorate.shell.kube.client import KubeClient
from quorate.shell.report import volcano_queues
from tests.unit.shell.scripted_server import (
    ScriptedServer,
    answer,
    credentials_for,
    may,
    refusal,
    serving,
    writer_of,
)
from tools.testing import HANGS_S

MADE = answer(201, {})
NO = refusal(403, "Forbidden", "cannot create queues")


@pytest.mark.parametrize(
    ("tries", "said"),
    [
        ([], []),
        ([NO, may(False)] * 3, ["quorate manifests, without the option --without volcano-queues"]),
        ([NO, may(True)] * 3, ["cannot create queues"]),
        ([NO, may(False), refusal(500, "Error", "away")], ["--without volcano-queues", "away"]),
    ],
)
async def test_what_is_wrong_is_said_once_and_it_goes_on(tries, said, monkeypatch):
    """Without the right a line came every ten seconds, for ever.

    Volcano's controller could close no queue whose state was written by another name than its own.
    """
    monkeypatch.setattr(volcano_queues, "_TRY_AGAIN_S", 0.001)
    async with (
        serving(ScriptedServer(*tries, MADE, MADE, MADE, MADE)) as server,
        KubeClient(credentials_for(server.url), write_connections_max=1) as client,
        asyncio.timeout(HANGS_S),
    ):
        with capture_logs() as logged:
            await volcano_queues._ensure(writer_of(client))
    assert not server.steps
    assert server.requests[-1].query_string == "fieldManager=queue-controller"
    assert server.requests[-1].content_type == "application/apply-patch+yaml"
    assert len(logged) == len(said)
    for line, words in zip(logged, said, strict=True):
        assert line["event"] == "cannot create a Volcano queue"
        assert words in line["problem"]
