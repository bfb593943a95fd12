"""Allocate devices in ResourceClaims before a gang is bound, and free what a gang does not use.

In: ``GangBinds`` and ``TakeBack``. Out: the gang, handed to the binder once every claim of every
member is allocated and reserved; or ``BindFailed`` for each bind that will not be sent. Called by
``committer`` in place of the binder. A gang without claims passes through at once. If a gang is not
bound after all, the claims stay as they were written: the core sees them, and either binds the gang
to them or takes them back. Plans of one attempt are handed on in their order, for the binds of the
last one complete the gang, and count on those before. Source: PreBind of kube-scheduler 1.36's
DynamicResources.

No device gets into two claims, however slow a write is. The core gives a device to nobody else
until the binds that rely on it have outcomes, so what counts is that nothing arrives after one.
Each write of an allocation carries the version of the claim that it was made for, which has our
finalizer. A claim that has changed is read again: what it has by then must be what the plan says,
or nothing. And when a write is given up whose answer was lost, the finalizer is taken off before
the failure is told: that makes what is still on its way too old. So it is with devices that are
being taken back, before their claim is used after all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
import structlog

from quorate.core.model.changes import BindFailed, BindFailure
from quorate.core.model.plan import Bind, GangBinds, Give, TakeBack
from quorate.core.model.policy import LATE_S
from quorate.shell.commit.claim_wire import (
    CLAIM,
    FINALIZER,
    allocation_body,
    claim_path,
    is_same,
    without_finalizer,
)
from quorate.shell.kube.errors import ApiError, Forbidden, NotFound, ServerError, Unreachable
from quorate.shell.kube.writer import Background, End, Priority, Rule, Writer
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import words_of

log = structlog.get_logger(__name__)

NOT_GRANTED = (
    "quorate may not patch ResourceClaims, so that it can give no devices: grant it with"
    " quorate manifests, without the option --without devices"
)
_GIVE = Rule(Priority.CLAIM, again_after_conflict=True)
_WITHDRAW = Rule(Priority.CLAIM, again_after_conflict=True, again_after_refusal=True)
_TAKE_BACK = Rule(Priority.CLAIM, tries_max=1)


class ClaimError(Exception):
    """A claim that cannot be written; the text says why."""


_KNOWN = (ClaimError, ApiError, msgspec.DecodeError)
"""What may be wrong with a claim; all else is a defect of ours."""


@dataclass(slots=True, eq=False)
class _Plan:
    """A plan whose claims are being written, or that waits for an earlier one."""

    gang: GangBinds
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is handed on, or will not be."""


class DeviceClaims:
    """Writes claims, a bounded number at a time, then hands gangs on to ``bind``.

    ``on_written`` gets each allocated claim as the API server answers it. So the core knows of the
    devices before the watch does, and gives them to nobody else if the bind fails.
    """

    def __init__(
        self,
        writer: Writer,
        bind: Callable[[GangBinds], None],
        on_change: Callable[[BindFailed], None],
        *,
        on_written: Callable[[bytes], None],
        clock: Clock,
    ) -> None:
        self._writer = writer
        self._bind = bind
        self._on_change = on_change
        self._on_written = on_written
        self._clock = clock
        self._writes = Background(writer.note)
        self._taken_back: dict[str, str] = {}
        """By claim's uid, the version at which its devices were last taken back."""
        self._may_arrive: dict[str, str] = {}
        """The same, until the write is answered: it may still reach the API server."""
        self._plans: dict[str, list[_Plan]] = {}
        """By attempt, in their order, the plans that are not handed on yet."""

    def submit(self, gang: GangBinds) -> None:
        """Start to bind a gang; returns at once. Replacements in a started one wait for nobody."""
        earlier = () if gang.started else tuple(self._plans.get(gang.attempt, ()))
        if not earlier and not any(bind.gives for bind in gang.binds):
            self._bind(gang)
            return
        plan = _Plan(gang)
        self._plans.setdefault(gang.attempt, []).append(plan)
        self._writes.start(self._hand_on(plan, earlier))

    def take_back(self, claims: Iterable[TakeBack]) -> None:
        """Start to free devices; returns at once."""
        for claim in claims:
            if self._taken_back.get(claim.uid) != claim.version:
                self._taken_back[claim.uid] = self._may_arrive[claim.uid] = claim.version
                self._writes.start(self._release(claim))

    async def close(self) -> None:
        """Cancel what is under way. The next leader finds the claims as they are."""
        await self._writes.close()

    async def _hand_on(self, plan: _Plan, earlier: Iterable[_Plan]) -> None:
        """Hand a plan on when its claims are written and the ``earlier`` plans are over."""
        gang, plans = plan.gang, self._plans[plan.gang.attempt]
        try:
            is_prepared = await self._prepare(gang)
            for one in earlier:
                await one.over.wait()
            if is_prepared and self._writer.may_write():
                if not all(one.gang.started for one in plans[plans.index(plan) + 1 :]):
                    # A later plan waits: its binds complete the gang, and none of this one. Of a
                    # started gang: it has lost all its members since, and starts anew.
                    gang = msgspec.structs.replace(gang, first=len(gang.binds), started=False)
                self._bind(gang)
        finally:
            plan.over.set()
            plans.remove(plan)
            if not plans:
                del self._plans[gang.attempt]

    async def _prepare(self, gang: GangBinds) -> bool:
        """Write all claims of the gang; return whether they are. One that fails fails all."""
        users: dict[tuple[str, str], tuple[Give, list[Bind]]] = {}
        for bind in gang.binds:
            for give in bind.gives:
                users.setdefault((give.namespace, give.claim), (give, []))[1].append(bind)
        problems: dict[str, str] = {}
        refused: list[Give] = []

        async def write(give: Give, binds: list[Bind]) -> None:
            try:
                await self._write(give, binds, gang.deadline_s)
            except Exception as error:
                about = f"claim {give.namespace}/{give.claim}"
                is_ours = not isinstance(error, _KNOWN)
                if is_ours:
                    self._writer.note("commit", about, error)
                text = f"{about}: {words_of(error) if is_ours else error}"
                problems.update(dict.fromkeys((bind.uid for bind in binds), text))
                if isinstance(error, Forbidden):
                    refused.append(give)

        await asyncio.gather(*(write(*one) for one in users.values()))
        if not self._writer.may_write():
            return False  # a successor decides about this gang, from what it finds
        if not problems:
            return True
        problems = await self._told(problems, refused)
        log.warning("devices could not be given", gang=str(gang.key), problems=len(problems))
        for bind in gang.binds:
            text = problems.get(bind.uid, "")
            failure = BindFailure.REFUSED if text else BindFailure.NOT_SENT
            self._on_change(BindFailed(bind.uid, bind.node, failure, text))
        return False

    async def _told(self, problems: dict[str, str], refused: list[Give]) -> dict[str, str]:
        """Return the problems, or for each of them the right that is missing, where it is that."""
        for give in refused[:1]:
            right = {"verb": "patch", "group": "resource.k8s.io", "resource": "resourceclaims"}
            if await self._writer.lacks_right(**right, namespace=give.namespace):
                return dict.fromkeys(problems, NOT_GRANTED)
        return problems

    async def _write(self, give: Give, binds: list[Bind], deadline_s: float) -> None:
        """Allocate and reserve one claim.

        Retries transient errors. Raises what ended the last try, once no try can arrive any more.
        """
        lost_s: float | None = None

        async def send() -> bytes:
            nonlocal lost_s
            try:
                return await self._write_once(give, binds)
            except (ServerError, Unreachable) as error:
                if isinstance(error, ServerError) or error.maybe_processed:
                    lost_s = self._clock.monotonic_s()
                raise

        outcome = await self._writer.write(send, _GIVE, deadline_s=deadline_s)
        if outcome.end in (End.REFUSED, End.GIVEN_UP) and lost_s is not None:
            await self._withdraw(give, lost_s + LATE_S)
        if outcome.end not in (End.DONE, End.DEPOSED) and outcome.error is not None:
            raise outcome.error

    async def _write_once(self, give: Give, binds: list[Bind]) -> bytes:
        reserved = [{"resource": "pods", "name": bind.name, "uid": bind.uid} for bind in binds]
        status: dict[str, object] = {"reservedFor": reserved}
        # The answer to this is the claim as it is now.
        body: dict[str, object] = {"metadata": {"uid": give.uid, "finalizers": [FINALIZER]}}
        path = claim_path(give.namespace, give.claim)
        claim = CLAIM.decode(await self._patch(path, body))
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError("it is being deleted")
        if claim.metadata.resource_version == self._may_arrive.get(claim.metadata.uid):
            await self._patch(path, without_finalizer(claim))
            claim = CLAIM.decode(await self._patch(path, body))
        if claim.status.allocation is None:
            now = datetime.fromtimestamp(self._clock.now_s(), UTC)
            status["allocation"] = allocation_body(give.allocation) | {
                "allocationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ")
            }
        elif not is_same(claim.status.allocation, give.allocation):
            raise ClaimError("it got other devices meanwhile")
        version = claim.metadata.resource_version
        body = {"metadata": {"uid": give.uid, "resourceVersion": version}, "status": status}
        path = claim_path(give.namespace, give.claim, "status")
        written = await self._patch(path, body)
        self._on_written(written)
        return written

    async def _withdraw(self, give: Give, until_s: float) -> None:
        """Make what was sent too old to arrive, or tell what it wrote; try until ``until_s``."""
        path = claim_path(give.namespace, give.claim)

        async def send() -> bytes:
            raw = await self._writer.get(path)
            claim = CLAIM.decode(raw)
            if give.uid != claim.metadata.uid:
                return raw  # ours is gone
            if claim.status.allocation is not None:
                self._on_written(raw)
            elif FINALIZER in (claim.metadata.finalizers or ()):
                return await self._writer.patch(path, without_finalizer(claim), "strategic")
            return raw

        async def is_over(error: ApiError) -> End | None:
            del error
            return End.GIVEN_UP if self._clock.monotonic_s() >= until_s else None

        await self._writer.write(send, _WITHDRAW, on_failed=is_over)

    async def _patch(self, path: str, body: object) -> bytes:
        try:
            return await self._writer.patch(path, body, "strategic")
        except NotFound as error:
            raise ClaimError("it does not exist any more") from error

    async def _release(self, claim: TakeBack) -> None:
        body = {
            "metadata": {"uid": claim.uid, "resourceVersion": claim.version},
            "status": {"allocation": None, "reservedFor": None, "devices": None},
        }
        path = claim_path(claim.namespace, claim.claim, "status")

        async def send() -> bytes:
            return await self._writer.patch(path, body, "merge")

        outcome = await self._writer.write(send, _TAKE_BACK)
        if outcome.end in (End.REFUSED, End.GIVEN_UP):  # else it is different, as the core will see
            problem = str(outcome.error)
            log.warning("devices could not be taken back", claim=claim.claim, problem=problem)
            self._taken_back.pop(claim.uid, None)
        elif self._may_arrive.get(claim.uid) == claim.version:
            del self._may_arrive[claim.uid]
