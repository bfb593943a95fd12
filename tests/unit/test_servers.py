"""A test's server that is closed while clients connect leaves nothing for the tests after it."""

import gc
import socket
import sys
import warnings

from tests.unit.cli.api_server import ApiServer, serving


def test_connections_that_nobody_waited_for_are_closed_with_their_server(monkeypatch):
    left = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: left.append(found.exc_value))
    for _ in range(10):
        with serving(ApiServer()) as server:
            where = ("127.0.0.1", int(server.url.rpartition(":")[2]))
            clients = [socket.create_connection(where) for _ in range(3)]
        for one in clients:
            one.close()
    del server
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        gc.collect()
    assert left == []
