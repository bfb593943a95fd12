"""The least that a start can take here: all pods read page by page, and dropped unread.

In: a cluster. Out: seconds and bytes. The API server makes the JSON anew for each client, which
takes more CPU than all that a scheduler does with it. Used by ``soak_large``.
"""

import re
import ssl
import time
from http.client import HTTPSConnection
from typing import Final
from urllib.parse import quote, urlsplit

from bench.cluster.measurement import BenchError
from tools.controlplane import Cluster

_PAGE: Final = 500
_NEXT: Final = re.compile(rb'"continue":"([^"]*)"')
_CHUNK_BYTES: Final = 1024 * 1024


def read_all(cluster: Cluster) -> tuple[float, int]:
    """Return how many seconds it took to read all pods, and how many bytes they were.

    Raises BenchError: a page was refused.
    """
    where = urlsplit(cluster.server)
    tls = ssl.create_default_context(cafile=str(cluster.ca))
    connection = HTTPSConnection(str(where.hostname), where.port, context=tls, timeout=120)
    headers = {"Authorization": f"Bearer {cluster.admin_token}", "Accept": "application/json"}
    begun_s, size_bytes, token = time.monotonic(), 0, ""
    try:
        while True:
            path = f"/api/v1/pods?limit={_PAGE}&continue={quote(token)}"
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise BenchError(f"{path}: {answer.status} {answer.read(500)!r}")
            head = answer.read(_CHUNK_BYTES)
            size_bytes += len(head)
            while chunk := answer.read(_CHUNK_BYTES):
                size_bytes += len(chunk)
            following = _NEXT.search(head[:4096])  # the list's metadata come first
            if following is None or not following[1]:
                return time.monotonic() - begun_s, size_bytes
            token = following[1].decode()
    finally:
        connection.close()
