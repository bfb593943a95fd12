"""``quorate replay``: give a recording to a new core, and compare its plans with the recorded ones.

In: a file of ``quorate record``. Out: the first difference, what ``--why`` asks for, one summary
line last; exit code 0 all plans are equal, 1 one differs, 2 the file cannot be replayed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from quorate import __version__
from quorate.cli.asking.names import Name, NotAName, find
from quorate.cli.show import output, why_text
from quorate.cli.show.survey_result import SurveyResult, explanations
from quorate.core.model.plan import Plan
from quorate.core.scheduler import Scheduler
from quorate.core.words.counting import counted
from quorate.shell.recording import file_format as recording
from quorate.shell.recording.checkpoint import CheckpointError, restore
from quorate.shell.recording.file_format import (
    AnyRecord,
    Begin,
    Checkpoint,
    Deciding,
    GangSummary,
    Observed,
    Planned,
    RecordingError,
    Stopped,
    Verified,
)
from quorate.shell.survey import Leader

_LINES_MAX = 20


class Difference(NamedTuple):
    """A decision that came out otherwise: its number, its time, and what differs."""

    decision: int
    now_s: float
    lines: list[str]


class Replay:
    """A new core that is given a recording, record by record.

    After a difference the two go different ways, so the next checkpoint is taken over.
    """

    def __init__(self) -> None:
        self.begin: Begin | None = None
        self.scheduler: Scheduler | None = None
        self.now_s = 0.0
        self.changes = 0
        self.decisions = 0
        self.decision = 0
        """Number of the last decision, counted from the start of the recorded process."""
        self.equal = 0
        self.differences = 0
        self.first: Difference | None = None
        self.ended = ""
        """Why the recording ended early, if it did."""
        self._plan: Plan | None = None
        self._in_step = True

    def run(self, records: Iterable[AnyRecord], until: int | None = None) -> None:
        """Replay all records, or those up to decision number ``until`` with its verification.

        Raises RecordingError: the records do not begin where replay can.
        """
        for record in records:
            is_later = isinstance(record, Observed | Deciding)
            if until is not None and is_later and self.decision >= until:
                return
            self._take(record)

    def _take(self, record: AnyRecord) -> None:
        if isinstance(record, Begin):
            self.begin = record
            self.scheduler = _new(record)
        elif self.begin is None or self.scheduler is None:
            raise RecordingError("the recording has no beginning")
        elif isinstance(record, Checkpoint):
            self._come_to(record, self.begin)
        elif isinstance(record, Stopped):
            self.ended = record.why
        else:
            self._repeat(record, self.scheduler)

    def _repeat(
        self, record: Observed | Deciding | Planned | Verified, scheduler: Scheduler
    ) -> None:
        """Make the recorded call, or compare what it returned."""
        match record:
            case Observed(changes=changes):
                self.changes += len(changes)
                scheduler.observe(changes)
            case Deciding(now_s=now_s):
                self.now_s = now_s
                self.decisions += 1
                self.decision += 1
                self._plan = scheduler.decide(now_s)
            case Planned() if self._plan is not None:
                self._compare(record, self._plan)
            case Verified() if self._plan is not None:
                plan, problems = scheduler.verified(self._plan)
                self._compare_verified(record, recording.verified(plan, problems))

    def _come_to(self, record: Checkpoint, begin: Begin) -> None:
        """Take the recorded state over, at the beginning or after a difference."""
        if not self.decisions and not self.changes:
            self.decision = record.decisions
        elif self._in_step and self.scheduler is not None:
            self.scheduler.forget_caches()
            return
        self.scheduler = _new(begin)
        try:
            restore(self.scheduler, record.state)
        except CheckpointError as error:
            raise RecordingError(f"a checkpoint cannot be read: {error}") from error
        self._in_step = True

    def _compare(self, recorded: Planned, plan: Plan) -> None:
        if recorded.digest == recording.digest(plan):
            self.equal += 1
        else:
            self._differs(_difference(recorded, recording.planned(plan), plan))

    def _compare_verified(self, recorded: Verified, replayed: Verified) -> None:
        if recorded.digest != replayed.digest and self._in_step:
            self.equal -= 1
            self._differs(
                [
                    f"verification found {len(recorded.problems)} problems when it was recorded, "
                    f"and {len(replayed.problems)} now",
                    *recorded.problems[:1],
                    *replayed.problems[:1],
                ]
            )

    def _differs(self, lines: list[str]) -> None:
        self.differences += 1
        self._in_step = False
        if self.first is None:
            self.first = Difference(self.decision, self.now_s, lines)


def _new(begin: Begin) -> Scheduler:
    return Scheduler(begin.policy, begin.apis, begin.identity)


def _difference(recorded: Planned, replayed: Planned, plan: Plan) -> list[str]:
    """Say in words how two plans differ, the gangs first."""
    lines: list[str] = []
    before = {gang.key: gang for gang in recorded.gangs}
    now = {gang.key: gang for gang in replayed.gangs}
    names = {gang.key: [bind.name for bind in gang.binds] for gang in plan.gangs}
    for key in sorted(before.keys() | now.keys()):
        if key not in now:
            lines.append(f"gang {key}: recorded with {_pods(before[key])}; not placed now")
        elif key not in before:
            lines.append(f"gang {key}: not placed when recorded; now with {_pods(now[key])}")
        elif before[key].digest != now[key].digest:
            lines += _gang_difference(before[key], now[key], names[key])
    if not lines and [g.key for g in recorded.gangs] != [g.key for g in replayed.gangs]:
        lines.append("the same gangs in another order")
    if recorded.evictions != replayed.evictions:
        lines.append(
            f"evictions: recorded {len(recorded.evictions)}, now {len(replayed.evictions)}"
        )
    if recorded.preemptions != replayed.preemptions:
        lines.append(f"preemptions: recorded {recorded.preemptions}, now {replayed.preemptions}")
    if recorded.wake_at_s != replayed.wake_at_s:
        lines.append(f"next look: recorded {recorded.wake_at_s}, now {replayed.wake_at_s}")
    if recorded.touched != replayed.touched:
        lines.append(f"touched gangs: recorded {recorded.touched}, now {replayed.touched}")
    return lines or ["a detail that no summary holds"]


def _gang_difference(before: GangSummary, now: GangSummary, pods: list[str]) -> list[str]:
    if before.attempt != now.attempt:
        return [f"gang {now.key}: attempt recorded {before.attempt}, now {now.attempt}"]
    recorded, replayed = _nodes(before), _nodes(now)
    if len(recorded) != len(replayed):
        then = counted(len(recorded), "pod")
        return [f"gang {now.key}: recorded with {then}, now with {len(replayed)}"]
    for index, (was, is_now) in enumerate(zip(recorded, replayed, strict=True)):
        if was != is_now:
            where = f"recorded {was}, now {is_now}"
            return [f"gang {now.key}: bind {index + 1} of {len(pods)}: {where} ({pods[index]})"]
    return [f"gang {now.key}: the same nodes, but other pods, size or deadline"]


def _pods(gang: GangSummary) -> str:
    pods = counted(sum(pods for _, pods in gang.nodes), "pod")
    return f"{pods} on {counted(len(gang.nodes), 'node')}"


def _nodes(gang: GangSummary) -> list[str]:
    return [node for node, pods in gang.nodes for _ in range(pods)]


def replay(path: Path, until: int | None, why: str | None) -> int:
    """Replay a file and print what came of it; return the exit code."""
    started_s = time.monotonic()
    run = Replay()
    failed = ""
    try:
        run.run(recording.read(path), until)
    except RecordingError as error:
        return output.error(f"{error}; give a file of quorate record")
    except Exception as error:  # a defect of the core: perhaps the one that was recorded
        output.defect(error)
        failed = f", then failed with {type(error).__name__}"
    if run.begin is None:
        return output.error(f"{path} holds no records")
    if run.begin is not None and run.begin.quorate != __version__:
        output.say(f"note: quorate {run.begin.quorate} recorded this, {__version__} replays it")
    if run.ended:
        output.say(f"note: the recording ended early: {run.ended}")
    if until is not None and run.decision < until:
        output.say(f"note: the recording ends with decision {run.decision}")
    if run.first is not None:
        output.say(f"decision {run.first.decision} (at {run.first.now_s:.3f}) differs:")
        for line in run.first.lines[:_LINES_MAX]:
            output.say(f"  {line}")
    code = _why(run, why) if why is not None else 0
    output.say(
        f"replayed {counted(run.changes, 'change', form=',')} and "
        f"{counted(run.decisions, 'decision', form=',')}: "
        f"{counted(run.equal, 'plan', form=',')} equal, {run.differences:,} different, "
        f"in {time.monotonic() - started_s:.1f} s{failed}"
    )
    return 1 if run.differences or failed else code


def _why(run: Replay, name: str) -> int:
    """Print why a gang stands where it stands as of the last decision that was replayed."""
    assert run.scheduler is not None
    try:
        keys = find(run.scheduler, "", Name.parse(name))
    except NotAName as error:
        return output.error(str(error))
    if not keys:
        output.say(f"no gang and no pod of ours is named {name} after decision {run.decision}")
        return 1
    found = explanations(run.scheduler, keys, run.now_s)
    result = SurveyResult(run.scheduler, keys, Leader(None), run.now_s, "", found, {})
    for one in found:
        output.print_lines(why_text.lines_of(one, result, wide=True))
    return 0
