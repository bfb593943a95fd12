"""What a step of the story can do, and how it finds out whether it came true.

In: a screen and clusters. Out: requests and narration; StepFailedError when something that the
story says is not so in time. While it waits, the view follows.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tools.controlplane import ApiError
from tools.demo.clusters import DemoCluster
from tools.demo.screen import Screen
from tools.demo.svg import svg
from tools.demo.view import summary, view
from tools.demo.world import Picture, look
from tools.signals import stop_if_asked

_FRAME_S = 0.08
_READ_S, _READ_WORD_S, _READ_S_MAX = 0.5, 0.17, 5.0  # how long a person takes to read text
_WHY_S_MAX = 30.0
_END_S_MAX = 2.0  # a process that was killed closes its connections before it can be waited for

Shown = tuple[str, DemoCluster]


class StepFailedError(Exception):
    """The cluster did not do what the story says; the one line names the step."""


class Stage:
    """The clusters that are shown, and the screen."""

    def __init__(
        self, screen: Screen, shown: Sequence[Shown], examples: Path, *, pace: float, wait_s: float
    ) -> None:
        """``pace`` multiplies the time to read; ``wait_s`` is how long a check may take."""
        self.pace = pace
        self._screen = screen
        self._shown = list(shown)
        self._examples = examples
        self._wait_s = wait_s
        self._step = "start"

    def show(self, *shown: Shown) -> None:
        """Show these clusters from now on."""
        self._shown = list(shown)
        self._look()

    def step(self, title: str) -> None:
        """Begin a step."""
        self._step = title
        self._screen.heading(title)

    def say(self, text: str) -> None:
        """Tell, and give time to read."""
        self._screen.say(text)
        self.pause(self._reading_s(text))

    def pause(self, for_s: float) -> None:
        """Let time pass, as far as there is a pace."""
        until_s = time.monotonic() + for_s * self.pace
        while (left_s := until_s - time.monotonic()) > 0:
            self._look()
            time.sleep(min(_FRAME_S, left_s))

    def snapshot(self) -> None:
        """Have the view printed, where there is no live one."""
        self._look()
        self._screen.snapshot()

    def draw(self, file: Path) -> None:
        """Write what is shown as an SVG. Raises OSError."""
        file.write_text(svg([(title, self._picture(one)) for title, one in self._shown]))

    # What is done

    def apply(self, name: str, *clusters: DemoCluster) -> None:
        """Apply a file of the examples. A Job has its pods before the next object comes.

        So who comes first in the file has its pods first, in each run.
        """
        file = self._examples / name
        self._do(f"kubectl apply --server-side -f examples/{name}")
        try:
            manifests = [obj for obj in yaml.safe_load_all(file.read_text()) if obj]
        except (OSError, yaml.YAMLError) as error:
            raise self._failed(f"{file} cannot be read: {error}") from None
        for cluster in clusters:
            for manifest in manifests:
                self._request(cluster.apply, manifest)
                if manifest["kind"] == "Job":
                    self._request(cluster.wait_for_pods, manifest)

    def scale(self, cluster: DemoCluster, deployment: str, replicas: int) -> None:
        """Scale a Deployment."""
        self._do(f"kubectl scale deployment {deployment} --replicas={replicas}")
        self._request(cluster.scale, deployment, replicas)

    def delete_pod(self, cluster: DemoCluster, name: str) -> None:
        """Delete a pod."""
        self._do(f"kubectl delete pod {name}")
        self._request(cluster.delete_pod, name)

    def why(self, cluster: DemoCluster, gang: str) -> None:
        """Run ``quorate why``, and show what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "quorate.cli", "why", gang],
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=_WHY_S_MAX,
        )
        if done.returncode != 0:
            stop_if_asked()  # a terminal sends Ctrl-C to both of us
            cluster.check(_END_S_MAX)
            raise self._failed(f"quorate why {gang} failed: {done.stderr.strip()}")
        self._screen.output(f"quorate why {gang}", done.stdout)
        self.pause(self._reading_s(done.stdout))

    # What has to be true

    def until(
        self,
        cluster: DemoCluster,
        expected: str,
        true: Callable[[Picture], bool],
        detail: Callable[[Picture], str] = lambda _picture: "",
    ) -> Picture:
        """Wait until something is true, and say so. Raises StepFailedError: it is not, in time."""
        started_s = time.monotonic()
        while not true(picture := self._picture(cluster)):
            self._look()
            if time.monotonic() - started_s > self._wait_s:
                seen = summary(picture)
                raise self._failed(f"after {self._wait_s:g} s not true: {expected}. Seen: {seen}")
            time.sleep(_FRAME_S / 4)
        self._look()
        self._screen.check(f"{expected}{detail(picture)}")
        self.pause(self._reading_s(expected))
        return picture

    def require(self, fact: bool, expected: str) -> None:
        """Raise StepFailedError if something is not so."""
        if not fact:
            raise self._failed(f"not true: {expected}")

    # Small things

    def _do(self, command: str) -> None:
        self._screen.action(command)
        self.pause(_READ_S)

    def _request(self, send: Callable[..., Any], *args: Any) -> None:  # noqa: ANN401
        try:
            send(*args)
        except ApiError as error:
            raise self._failed(f"the API server refused: {error.message}") from None
        except (OSError, http.client.HTTPException) as error:
            for _, cluster in self._shown:
                cluster.check(_END_S_MAX)
            raise self._failed(f"the cluster does not answer: {error}") from None

    def _look(self) -> None:
        self._screen.draw(view([(title, self._picture(one)) for title, one in self._shown]))

    def _picture(self, cluster: DemoCluster) -> Picture:
        stop_if_asked()
        try:
            return look(cluster.client)
        except (OSError, http.client.HTTPException) as error:
            cluster.check(_END_S_MAX)
            raise self._failed(f"the cluster does not answer: {error}") from None

    def _failed(self, what: str) -> StepFailedError:
        return StepFailedError(f"{self._step}: {' '.join(what.split())}")

    @staticmethod
    def _reading_s(text: str) -> float:
        return min(_READ_S + _READ_WORD_S * len(text.split()), _READ_S_MAX)
