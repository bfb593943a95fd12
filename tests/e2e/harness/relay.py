"""A TCP relay in front of the API server that a test can cut, throttle, silence or tear in half."""

import contextlib
import itertools
import random
import selectors
import socket
import threading
import time

_CHUNK = 1 << 16
_THROTTLED_CHUNK = 1 << 12


class _Link:
    """One relayed connection: ``near`` is the client's end, ``far`` the API server's."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near = near
        self.far = far
        self.is_half_open = threading.Event()

    def cut(self) -> None:
        for end in (self.near, self.far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Relay:
    """Relays to ``target`` from ``port``, on loopback. A context manager.

    With ``more`` targets each new connection goes to the next one, as through a Service.
    """

    def __init__(self, target: tuple[str, int], *more: tuple[str, int]) -> None:
        self._targets = itertools.cycle([target, *more])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._links: set[_Link] = set()
        self._lock = threading.Lock()
        self._closing = False
        self._is_open = threading.Event()
        self._is_open.set()
        self._bytes_per_s = 0.0
        self.connections = 0
        self.held = 0
        """How often it has held something back."""
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *error: object) -> None:
        self._closing = True
        self._is_open.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(timeout=5)

    @property
    def open(self) -> int:
        """How many connections there are."""
        with self._lock:
            return len(self._links)

    def cut(self) -> None:
        """Reset all connections."""
        with self._lock:
            links, self._links = self._links, set()
        for link in links:
            link.cut()

    def cut_some(self, chance: random.Random, share: float = 0.3) -> None:
        """Reset each connection with this probability."""
        with self._lock:
            links = {link for link in sorted(self._links, key=id) if chance.random() < share}
            self._links -= links
        for link in links:
            link.cut()

    def stall(self) -> None:
        """Hold back every byte, in both directions, without closing anything: a black hole.

        New connections are accepted and get no answer either.
        """
        self._is_open.clear()

    def go_on(self) -> None:
        """End ``stall`` and ``throttle``."""
        self._bytes_per_s = 0.0
        self._is_open.set()

    def throttle(self, bytes_per_s: float) -> None:
        """Let each connection carry so much, both directions together."""
        self._bytes_per_s = bytes_per_s

    def half_open(self) -> None:
        """Have the server lose all connections, and the client not hear of it.

        What the client sends on them is swallowed; new connections work.
        """
        with self._lock:
            links, self._links = self._links, set()
        for link in links:
            link.is_half_open.set()
            with contextlib.suppress(OSError):
                link.far.shutdown(socket.SHUT_RDWR)

    def _start(self, target, *args) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _accept(self) -> None:
        while not self._closing:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(next(self._targets))
            except OSError:
                near.close()
                continue
            self.connections += 1
            link = _Link(near, far)
            with self._lock:
                self._links.add(link)
            self._start(self._relay, link)

    def _relay(self, link: _Link) -> None:
        with link.near, link.far, contextlib.suppress(OSError):
            try:
                self._carry(link)
            finally:
                with self._lock:
                    self._links.discard(link)
            if link.is_half_open.is_set():
                link.near.settimeout(0.1)
                while not self._closing:
                    with contextlib.suppress(TimeoutError):
                        if not link.near.recv(_CHUNK):
                            return

    def _carry(self, link: _Link) -> None:
        other = {link.near: link.far, link.far: link.near}
        with selectors.DefaultSelector() as selector:
            for end in other:
                selector.register(end, selectors.EVENT_READ)
            while True:
                for ready, _ in selector.select():
                    source = ready.fileobj
                    data = source.recv(_THROTTLED_CHUNK if self._bytes_per_s else _CHUNK)
                    if not self._is_open.is_set():
                        self.held += 1
                        self._is_open.wait()
                    if link.is_half_open.is_set() or not data:
                        return
                    if self._bytes_per_s:
                        time.sleep(len(data) / self._bytes_per_s)
                    other[source].sendall(data)
