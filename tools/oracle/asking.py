"""Run the oracle as a child process and ask it.

In: cases as dicts. Out: answers as dicts. One process answers all cases of an ``Oracle``; when it
dies or takes too long, the error names the case, and the next case gets a new process.
"""

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from tools.controlplane.cluster import say
from tools.controlplane.process import die_with_parent
from tools.oracle.build import build

ERROR_CASE_CHARS_MAX = 2000
STDERR_CHARS_MAX = 3000


class OracleError(RuntimeError):
    """The oracle could not answer a case; ``case`` is the case."""

    def __init__(self, why: str, case: Mapping[str, Any]) -> None:
        text = json.dumps(case)
        if len(text) > ERROR_CASE_CHARS_MAX:
            text = f"{text[:ERROR_CASE_CHARS_MAX]}... ({len(text)} characters)"
        super().__init__(f"{why}\nThe case: {text}")
        self.case = case


class Oracle:
    """kube-scheduler's plugins, to be asked. A context manager; not for several threads.

    ``features`` are feature gates as kube-scheduler has them, fixed for the life of the process.
    ``timeout_s`` bounds the wait for one answer.
    """

    def __init__(
        self,
        *,
        features: Mapping[str, bool] | None = None,
        timeout_s: float = 60.0,
        path: Path | None = None,
    ) -> None:
        self._path = path
        self._arguments = []
        if features:
            gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(features.items()))
            self._arguments = ["--features", gates]
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._log = Path(os.devnull)  # of the process, until __enter__ has a place for one
        self._pending = b""  # read, but of the next answer

    def __enter__(self) -> Self:
        if self._path is None:
            self._path = build(say)
        self._folder = tempfile.TemporaryDirectory(prefix="quorate-oracle-")
        self._log = Path(self._folder.name) / "stderr"
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """The id of the process that answers, started if there is none."""
        return self._running().pid

    def ask(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Give the answer to one case; raise OracleError where there is none."""
        process = self._running()
        _write(process, [json.dumps(case).encode() + b"\n"])
        return self._read_answer(process, case)

    def ask_all(self, cases: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Give the answers in the order of the cases, which are sent ahead: faster than one by one.

        The first case without an answer raises OracleError; those behind it are dropped.
        """
        listed = list(cases)
        process = self._running()
        lines = [json.dumps(case).encode() + b"\n" for case in listed]
        writer = threading.Thread(target=_write, args=(process, lines), daemon=True)
        writer.start()
        answered = 0
        try:
            for case in listed:
                answer = self._read_answer(process, case)
                answered += 1
                yield answer
        finally:
            if answered < len(listed):
                self._stop()  # answers are still to come that nobody will read
            writer.join()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if self._path is None:
                raise RuntimeError("use Oracle as a context manager")
            self._pending = b""
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    die_with_parent([str(self._path), *self._arguments]),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    process_group=0,  # Ctrl-C is for us
                )
        return self._process

    def _read_answer(
        self, process: subprocess.Popen[bytes], case: Mapping[str, Any]
    ) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._read_line(process, case))
        if "error" in answer:
            raise OracleError(answer["error"], case)
        return answer

    def _read_line(self, process: subprocess.Popen[bytes], case: Mapping[str, Any]) -> bytes:
        assert process.stdout is not None
        deadline_s = time.monotonic() + self._timeout_s
        parts = [self._pending]
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    self._stop()
                    raise OracleError(f"No answer within {self._timeout_s:g} s.", case)
                part = os.read(process.stdout.fileno(), 1 << 20)
                if not part:
                    raise OracleError(self._obituary(process), case)
                parts.append(part)
        line, _, self._pending = b"".join(parts).partition(b"\n")
        return line

    def _obituary(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait()
        said = self._log.read_text(errors="replace").strip()[:STDERR_CHARS_MAX]
        self._stop()
        return f"The oracle ended with code {code}.\n{said}"

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # of what nobody will read
                    stream.close()


def _write(process: subprocess.Popen[bytes], lines: list[bytes]) -> None:
    assert process.stdin is not None
    try:
        for line in lines:
            process.stdin.write(line)
        process.stdin.flush()
    except (BrokenPipeError, ValueError):  # the reader tells what happened
        return
