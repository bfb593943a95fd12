"""A server of a test leaves nothing open, though its clients go on connecting while it ends."""

import contextlib
import socket
import threading

import pytest

from tests.e2e.harness.recording_proxy import Recording
from tests.unit.cli.api_server import ApiServer, serving
from tests.unit.shell.authority import Authority
from tools.testing import HANGS_S

PATHS = ("/answered", "/watched?watch=1", "/held", "/watched?watch=1", "/answered")


@pytest.mark.parametrize("part", range(8))
def test_a_server_that_ends_amid_connections_leaves_none_open(part, tmp_path):
    """What is left open fails the test: see conftest.py."""
    authority = Authority(tmp_path, "right")
    api = ApiServer(all_others=(200, "{}"))

    def is_held(method, path):
        return path == "/held"

    over, many = threading.Event(), threading.Semaphore(0)

    def connect(path, port):
        while not over.is_set():
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", port), HANGS_S) as client,
            ):
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                many.release()
                client.recv(1000)

    with serving(api, authority.server()):
        with Recording(api.url, str(authority.file), holds=is_held) as proxy:
            port = int(proxy.url.rpartition(":")[2])
            clients = [threading.Thread(target=connect, args=(path, port)) for path in PATHS]
            for one in clients:
                one.start()
            for _ in range(20 + 10 * part):
                many.acquire()
        over.set()
        for one in clients:
            one.join()
