"""A process of quorate's that serves health and metrics: started, asked, and stopped.

Used by ``scheduler`` and ``cks``, which say what its command is and who it is.
"""

import json
import signal
import subprocess
from pathlib import Path
from typing import Self
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tools.testing import free_port, wait_for


class Running:
    """One process, of which a subclass says the ``command``."""

    kubeconfig: Path

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.log_file = folder / f"quorate-{self.port}.log"
        self.process: subprocess.Popen | None = None

    def command(self) -> list[str]:
        """Return the command line."""
        raise NotImplementedError

    def go_through(self, proxy: str) -> None:
        """Let its next start reach the API server through this proxy without TLS."""
        kubeconfig = json.loads(self.kubeconfig.read_text())
        kubeconfig["clusters"][0]["cluster"] = {"server": proxy}
        self.kubeconfig.write_text(json.dumps(kubeconfig))

    def start(self, *, wait_ready: bool = True) -> Self:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        if wait_ready:
            try:
                wait_for(self._is_ready, "it is ready")
            except BaseException as error:
                error.add_note(self.told())
                self.kill()  # nobody has it yet who would stop it
                raise
        return self

    def _is_ready(self) -> bool:
        """Tell whether it leads or stands by; fail when it has ended.

        A standby's page has a second line, which names the leader.
        """
        assert self.process.poll() is None, "it has ended"
        return self.page("/readyz").split("\n")[0] == "ok"

    def page(self, path: str) -> str:
        """Return the text of a page; empty when there is no answer."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.read().decode().strip()
        except HTTPError as error:
            with error:
                return error.read().decode().strip()
        except (URLError, OSError):
            return ""

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of one metric; 0 when it is not there."""
        wanted = "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else ""
        for line in self.page("/metrics").splitlines():
            if line.startswith(f"{name}{wanted} "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def log(self) -> str:
        return self.log_file.read_text()

    def told(self) -> str:
        """Return whether it runs, what /readyz says and the end of the log."""
        code = self.process.poll() if self.process else None
        runs = "it runs" if code is None else f"it ended with {code}"
        end = self.log().splitlines()[-25:]
        return "\n".join((runs, self.page("/readyz"), *(line[:600] for line in end)))

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Freeze it, as a machine that swaps or a debugger would."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is not None:
            return self.process.returncode
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -9

    def complaints(self) -> str:
        """Return the end of the log when it tells of a defect; empty otherwise."""
        log = self.log()
        defects = ("Traceback", "failed verification", "a bind worker failed", "was never awaited")
        return log[-8000:] if any(defect in log for defect in defects) else ""
