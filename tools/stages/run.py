"""Runs stages side by side: begins what fits beside what runs, and tells what came of each."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.stages.plan import Stage
from tools.stages.process import Running, children_of_ours, end_orphans, stop
from tools.stages.screen import Screen

LOOK_S = 0.1


class Run:
    """One run of some stages."""

    def __init__(
        self,
        stages: Sequence[Stage],
        folder: Path,
        screen: Screen,
        *,
        cores: float,
        keep_going: bool,
    ) -> None:
        """``cores``: how many the running stages may keep busy; one stage always runs."""
        self._waiting = list(stages)
        self._folder = folder
        self._screen = screen
        self._cores = cores
        self._keep_going = keep_going
        self._known = children_of_ours()
        self._running: list[Running] = []
        self.ended: list[Running] = []

    def play(self, sleep: Callable[[float], None] = time.sleep) -> int:
        """Run all; return 0, or 1 when a stage failed or left a process behind.

        After a failure nothing more begins (unless ``keep_going``), and what runs goes on to its
        end. Whatever ends this early, Ctrl-C included, ends all stages with it.
        """
        try:
            while self._waiting or self._running:
                self._begin()
                if not self._running:
                    break
                sleep(LOOK_S)
                self._see_who_ended()
                self._screen.progress(self._running)
        finally:
            stop(self._running)
            self.left_behind = end_orphans(self._known)
        self._screen.summary(self.ended, self._waiting, self.left_behind)
        failed = any(one.code for one in self.ended)
        return int(failed or bool(self._waiting) or self.left_behind > 0)

    def _begin(self) -> None:
        passed = {one.stage.name for one in self.ended if one.code == 0}
        if len(passed) < len(self.ended) and not self._keep_going:
            return
        for stage in list(self._waiting):
            load = sum(one.stage.load for one in self._running)
            fits = not self._running or load + stage.load <= self._cores
            if fits and passed.issuperset(stage.after):
                self._waiting.remove(stage)
                self._running.append(Running(stage, self._folder))

    def _see_who_ended(self) -> None:
        for one in list(self._running):
            if one.ended():
                self._running.remove(one)
                self.ended.append(one)
                self._screen.ended(one)
