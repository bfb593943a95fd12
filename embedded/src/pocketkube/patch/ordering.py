"""The order of merged lists. Source: k8s.io/apimachinery ``pkg/util/strategicpatch`` of 1.36.

Items are told apart by their merge key, or by their value when the key is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from pocketkube.patch.values import Json, same


def partition(
    items: Sequence[Json], chosen: Sequence[Json], key: str
) -> tuple[list[Json], list[Json]]:
    """Return the items that are in ``chosen`` too, and those that are not."""
    inside = [_place(chosen, item, key) >= 0 for item in items]
    both = list(zip(items, inside, strict=True))
    return [item for item, there in both if there], [item for item, there in both if not there]


def in_order(
    patched: Sequence[Json],
    others: Sequence[Json],
    patch_order: Sequence[Json],
    live_order: Sequence[Json],
    key: str,
) -> list[Json]:
    """Return both lists as one: those of the patch in its order, the others where they were.

    Each of the others comes before the first of the patch that was behind it in ``live_order``; so
    an item that is new goes to the front.
    """
    left, right = _sorted(others, live_order, key), _sorted(patched, patch_order, key)
    out: list[Json] = []
    while left and right:
        before, after = _place(live_order, left[0], key), _place(live_order, right[0], key)
        out.append((left if 0 <= before < after else right).pop(0))
    return out + left + right


def _sorted(items: Sequence[Json], order: Sequence[Json], key: str) -> list[Json]:
    places = {id(item): _place(order, item, key) for item in items}

    def compare(one: Json, other: Json) -> int:
        first, second = places[id(one)], places[id(other)]
        return first - second if first >= 0 and second >= 0 else 0

    return sorted(items, key=cmp_to_key(compare))


def _place(items: Sequence[Json], item: Json, key: str) -> int:
    """Return where an item is; -1 when it is not there."""
    wanted = _known_by(item, key)
    return next((i for i, other in enumerate(items) if same(_known_by(other, key), wanted)), -1)


def _known_by(item: Json, key: str) -> Json:
    return item.get(key) if key and isinstance(item, dict) else item
