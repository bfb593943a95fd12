"""How long room is reserved for a lost member's replacement: our annotation, in any dialect.

It stands on the gang's object, or on its pods where there is none. In: annotations. Out: seconds,
and what is wrong with them. Called by ``dialects.resolve`` and by ``shell.watch`` for objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from quorate.core.model import GangSpec
from quorate.dialects.common.fields import UNREADABLE

HOLD_SECONDS = "quorate.dev/hold-seconds"
HOLD_S_MAX = 86_400.0
FOR_NOBODY = (
    f"annotation {HOLD_SECONDS} holds nothing for a pod without a controller: nobody makes another"
)

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Annotated(msgspec.Struct):
    metadata: _Metadata


_DECODER = msgspec.json.Decoder(_Annotated)


def read(annotations: Mapping[str, str]) -> tuple[float | None, str]:
    """Return the length in seconds, None when there is none to use, and a warning or ``""``."""
    written = annotations.get(HOLD_SECONDS)
    if written is None:
        return None, ""
    seconds = float(written) if _NUMBER.fullmatch(written) else -1.0
    if 0.0 <= seconds <= HOLD_S_MAX:
        return seconds, ""
    return None, (
        f'annotation {HOLD_SECONDS} is "{written[:63]}", which is no number of seconds from 0 to '
        f"{HOLD_S_MAX:.0f}: the default holds"
    )


def with_hold_time(spec: GangSpec, raw: bytes) -> GangSpec:
    """Return the gang with what the annotation of its object says."""
    if HOLD_SECONDS.encode() not in raw:
        return spec
    try:
        annotations = _DECODER.decode(raw).metadata.annotations or {}
    except UNREADABLE:
        return spec  # the annotations are not what they have to be, and the rest is usable
    hold_s, warning = read(annotations)
    both = "; ".join(said for said in (spec.warning, warning) if said)
    return msgspec.structs.replace(spec, hold_s=hold_s, warning=both)
