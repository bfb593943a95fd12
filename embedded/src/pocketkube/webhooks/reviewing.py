"""A write under review: mutating webhooks change it one after the other, validating ones judge it.

In: what a client wants to write. Out: what is to be written, or ApiError. Only requests over HTTP
are reviewed; what controllers and node agents of this process write is not.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
from collections.abc import Callable

from pocketkube import errors
from pocketkube.api.admission.policies import Write
from pocketkube.errors import ApiError
from pocketkube.objects import Object, name_of
from pocketkube.patch.json_patch import apply_json_patch
from pocketkube.store.store import Store
from pocketkube.webhooks.calling import Answer, Caller, CallError
from pocketkube.webhooks.registered import (
    ConditionError,
    Hook,
    Kind,
    Registered,
    matches_conditions,
)

Finish = Callable[[Object], Object]
"""Makes of what was sent what would be stored: a dry run. Raises ApiError."""


class Reviews:
    """Asks the webhooks that are registered."""

    def __init__(self, store: Store, new_uid: Callable[[], str]) -> None:
        self._registered = Registered(store)
        self._caller = Caller()
        self._new_uid = new_uid

    async def close(self) -> None:
        """End all connections to webhooks."""
        await self._caller.close()

    @property
    def any(self) -> bool:
        """Whether a webhook is registered."""
        return any(self._registered.hooks().values())

    def concerned(self, write: Write) -> bool:
        """Tell whether some webhook wants to be asked about writes like this one."""
        kinds: tuple[Kind, ...] = ("mutating", "validating")
        return any(self._registered.concerned(kind, write) for kind in kinds)

    async def reviewed(
        self, write: Write, finish: Finish | None, *, dry_run: bool
    ) -> Object | None:
        """Return the object as mutating webhooks left it; None when they changed nothing.

        ``write.obj`` is what was sent; ``finish`` says what would be stored (None: just that).
        Raises ApiError: a webhook refuses the write, or cannot be asked and has to be.
        """
        sent = write.obj
        seen = sent if finish is None or sent is None else finish(copy.deepcopy(sent))
        write = dataclasses.replace(write, name=write.name or name_of(seen or {}))
        changed = False
        for hook in self._registered.concerned("mutating", dataclasses.replace(write, obj=seen)):
            answer = await self._asked(hook, dataclasses.replace(write, obj=seen), dry_run)
            if answer is None or not answer.patch or seen is None:
                continue
            patched = apply_json_patch(copy.deepcopy(seen), answer.patch)
            changed = changed or patched != seen
            seen = patched
        if changed and finish is not None and seen is not None:
            sent = seen
            seen = finish(copy.deepcopy(sent))
        final = dataclasses.replace(write, obj=seen)
        hooks = self._registered.concerned("validating", final)
        await asyncio.gather(*(self._asked(hook, final, dry_run) for hook in hooks))
        return sent if changed else None

    async def _asked(self, hook: Hook, write: Write, dry_run: bool) -> Answer | None:
        """Return a hook's answer; None when it does not matter. Raises ApiError."""
        try:
            if not matches_conditions(hook, write):
                return None
            if dry_run and hook.spec.get("sideEffects") not in ("None", "NoneOnDryRun"):
                why = f'admission webhook "{hook.name}" does not support dry run'
                raise errors.bad_request(why)
            answer = await self._caller.ask(hook, write, self._new_uid(), dry_run=dry_run)
        except (CallError, ConditionError) as error:
            if not hook.must_answer:
                return None
            text = f'failed calling webhook "{hook.name}": failed to call webhook: {error}'
            raise ApiError(500, "InternalError", f"Internal error occurred: {text}") from error
        for warning in answer.warnings:
            write.warn(warning)
        if not answer.allowed:
            raise _refusal(hook, answer)
        return answer


def _refusal(hook: Hook, answer: Answer) -> ApiError:
    status = answer.status
    text = f'admission webhook "{hook.name}" denied the request'
    why = status.get("message") or status.get("reason")
    text = f"{text}: {why}" if why else f"{text} without explanation"
    code = status.get("code") or 403
    reason = status.get("reason") or ("Forbidden" if code == 403 else "")
    return ApiError(int(code), str(reason), text, status.get("details") or None)
