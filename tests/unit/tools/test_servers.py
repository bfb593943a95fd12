"""A server of a test has its port alone, and leaves nothing open while clients go on connecting."""

import contextlib
import socket
import subprocess
import sys
import threading

import pytest

from tests.e2e.harness.recording_proxy import Recording
from tests.paths import ROOT
from tests.unit.cli.api_server import ApiServer, serving
from tests.unit.shell.authority import Authority
from tools.controlplane.process import free_port
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


def test_a_port_that_one_process_has_is_not_given_to_another():
    """Nobody listens on it yet: its server takes a moment to start, or starts again."""
    mine = free_port()
    program = (
        "from tools.controlplane import process\n"
        f"process._PORTS = range({mine}, {mine + 1})\n"
        "try: print(process.free_port())\n"
        "except process.ComponentError: print('none')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "none\n"
