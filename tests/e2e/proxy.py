"""A TCP relay in front of the API server that a test can cut, stall or silence."""

import contextlib
import itertools
import selectors
import socket
import threading

_CHUNK = 1 << 16


class Relay:
    """Relays to ``target`` from ``port``, on loopback. A context manager.

    With ``more`` targets each new connection goes to the next one, as through a Service.
    """

    def __init__(self, target: tuple[str, int], *more: tuple[str, int]) -> None:
        self._targets = itertools.cycle([target, *more])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._closing = False
        self._is_open = threading.Event()
        self._is_open.set()
        self.connections = 0
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

    def cut(self) -> int:
        """Reset all connections; return how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def stall(self) -> None:
        """Hold back every byte, in both directions, without closing anything."""
        self._is_open.clear()

    def go_on(self) -> None:
        self._is_open.set()

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
            with self._lock:
                self._pairs.add((near, far))
            self._start(self._relay, near, far)

    def _relay(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, selectors.DefaultSelector() as selector, contextlib.suppress(OSError):
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while True:
                for ready, _ in selector.select():
                    data = ready.fileobj.recv(_CHUNK)
                    self._is_open.wait()
                    if not data:
                        return
                    ready.data.sendall(data)
