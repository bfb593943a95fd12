"""How many pods of a Job have ended, counted once each, also when the pods are gone.

Real Jobs put a finalizer on their pods, so that none goes uncounted. Here no event can be missed,
because controllers live in the process that stores: pods need no finalizer.
"""

from __future__ import annotations

from collections.abc import Iterable

from pocketkube.controllers.pod_table import Owned, PodFacts
from pocketkube.objects import Object


class Tally:
    """What has become of the pods of one Job."""

    __slots__ = (
        "counted",
        "done",
        "excused",
        "failed",
        "failures_in_a_row",
        "last_failure_s",
        "succeeded",
    )

    def __init__(self, job: Object, owned: Owned) -> None:
        """Go on where the Job's status stopped; ``owned`` are the pods that are there."""
        status = job.get("status") or {}
        self.succeeded = max(int(status.get("succeeded", 0)), owned.succeeded)
        self.failed = max(int(status.get("failed", 0)), owned.failed)
        self.done = set(parse_indexes(status.get("completedIndexes", "")))
        self.counted = {pod.uid for pod in owned.pods.values() if pod.finished}
        self.done.update(p.completion_index for p in owned.pods.values() if p.phase == "Succeeded")
        self.done.discard(-1)
        self.excused: set[str] = set()  # UIDs of pods that the controller itself took away
        self.failures_in_a_row = 0
        self.last_failure_s = 0.0

    def follow(
        self, before: PodFacts | None, after: PodFacts | None, now_s: float, *, gone_fails: bool
    ) -> None:
        """Follow one pod. ``gone_fails``: one that is deleted counts as failed at once."""
        pod = after or before
        assert pod is not None, "an event is about something"
        if pod.uid not in self.counted:
            if pod.phase == "Succeeded":
                self._count_success(pod)
            elif pod.phase == "Failed" or self._is_taken(pod, after, gone_fails):
                self._count_failure(pod, now_s)
        if after is None:
            self.counted.discard(pod.uid)
            self.excused.discard(pod.uid)

    def _is_taken(self, pod: PodFacts, after: PodFacts | None, gone_fails: bool) -> bool:
        if pod.uid in self.excused:
            return False
        return after is None or (after.terminating and gone_fails)

    def _count_success(self, pod: PodFacts) -> None:
        self.counted.add(pod.uid)
        self.failures_in_a_row = 0
        if pod.completion_index < 0:
            self.succeeded += 1
        elif pod.completion_index not in self.done:
            self.done.add(pod.completion_index)
            self.succeeded += 1

    def _count_failure(self, pod: PodFacts, now_s: float) -> None:
        self.counted.add(pod.uid)
        self.failed += 1
        self.failures_in_a_row += 1
        self.last_failure_s = now_s


def parse_indexes(text: str) -> Iterable[int]:
    """Read ``0-2,5`` as 0, 1, 2, 5."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def written_indexes(indexes: Iterable[int]) -> str:
    """Write 0, 1, 2, 5 as ``0-2,5``; two in a row are ``0,1``."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = []
    for run in runs:
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts.extend(map(str, run))
    return ",".join(parts)
