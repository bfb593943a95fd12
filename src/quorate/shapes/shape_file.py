"""What ``quorate up --shape FILE|preset`` reads: pools of nodes, and what tells their nodes apart.

In: a YAML file, or the name of a preset. Out: a ``Shape``, and Node objects of it. Called by the
command line; the format is described in docs/users/shapes.md.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta, Struct, field

from quorate.core.model.quantity import QuantityError, counts_gpus, parse_amount
from quorate.shapes.patterns import PatternError, fill

NODES_MAX = 100_000
DEFAULT = "small"

# The loader in C is ten times faster, and ends the process when brackets are nested very deeply.
_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AT = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
_SUFFIXES = (".yaml", ".yml", ".json")
_BASE_LABELS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}

Count = Annotated[int, Meta(ge=0, le=NODES_MAX)]
Amount = str | int | float
Node = dict[str, Any]
"""A Node as JSON."""


class ShapeError(ValueError):
    """A shape cannot be used; the text names file and field, and says what to do."""


class Level(Struct, forbid_unknown_fields=True, frozen=True):
    """Nodes that are close to one another, such as those of a rack."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$", max_length=40)]
    nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    first: Annotated[int, Meta(ge=0)] = 0


class Taint(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """``spec.taints[]`` of each node."""

    key: Annotated[str, Meta(min_length=1)]
    effect: Annotated[str, Meta(pattern="^(NoSchedule|PreferNoSchedule|NoExecute)$")]
    value: str = ""


class Pool(Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """Nodes that are alike."""

    name: Annotated[str, Meta(min_length=1)]
    count: Count
    capacity: dict[str, Amount]
    allocatable: dict[str, Amount] = field(default_factory=dict)  # what differs from capacity
    node_name: str = "{pool}-{index}"
    levels: list[Level] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: list[Taint] = field(default_factory=list)


class Shape(Struct, forbid_unknown_fields=True, frozen=True):
    """A cluster's nodes."""

    about: str  # one line
    pools: Annotated[list[Pool], Meta(min_length=1)]

    @property
    def count(self) -> int:
        """How many nodes it has as it is written."""
        return sum(pool.count for pool in self.pools)


def presets() -> list[tuple[str, str]]:
    """Return name and one line of each preset, the default first, then by name."""
    found = [(name, load(name).about) for name in _preset_names()]
    return sorted(found, key=lambda one: (one[0] != DEFAULT, one[0]))


def load(name_or_path: str | Path) -> Shape:
    """Read a preset by its name, or else a file. Raises ShapeError."""
    name = str(name_or_path)
    if name in _preset_names():
        text = resources.files(__package__).joinpath("presets", f"{name}.yaml").read_text("utf-8")
        return _shape(yaml.load(text, Loader=_FAST), f"preset {name}")
    path = Path(name_or_path)
    if not path.exists() and not name.endswith(_SUFFIXES) and path.name == name:
        close = difflib.get_close_matches(name, _preset_names(), n=1)
        meant = f"Did you mean {close[0]}? " if close else ""
        raise ShapeError(
            f"There is no shape {name!r}. {meant}The presets are {', '.join(_preset_names())}; "
            "anything else is the path of a file."
        )
    try:
        return parse(path.read_text("utf-8"), source=name)
    except OSError as error:
        what = error.strerror or str(error)
        raise ShapeError(f"{name}: {what}. Give the path of a file, or a preset.") from error
    except UnicodeDecodeError as error:
        raise ShapeError(f"{name}: this is not text. Save the file as UTF-8.") from error


def parse(text: str, *, source: str) -> Shape:
    """Read a shape from YAML; ``source`` names it in errors. Raises ShapeError."""
    try:
        whole = yaml.load(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{source}:{mark.line + 1}" if mark else source
        what = getattr(error, "problem", None) or str(error)
        raise ShapeError(
            f"{place}: {what}. This is not valid YAML: check indentation, quotes and brackets."
        ) from error
    except RecursionError:
        raise ShapeError(f"{source}: brackets are nested too deeply.") from None
    return _shape(whole, source)


def _shape(whole: object, source: str) -> Shape:
    if not isinstance(whole, dict):
        what = "the file is empty" if whole is None else "this is no mapping of fields"
        raise ShapeError(f"{source}: {what}. The format is described in docs/users/shapes.md.")
    try:
        shape = msgspec.convert(whole, Shape)
    except msgspec.ValidationError as error:
        raise ShapeError(_explained(str(error), source)) from None
    for index, pool in enumerate(shape.pools):
        _check_pool(pool, f"{source}: pools[{index}]")
    if not shape.count:
        raise ShapeError(f"{source}: pools: no pool has a node. Give one a count.")
    return shape


def nodes_of(shape: Shape, count: int | None = None) -> Iterator[Node]:
    """Give the Node objects, pool after pool; ``count`` scales all pools in proportion.

    They have no conditions: their agents make them ready. Raises ShapeError: ``count`` is out of
    range, or two nodes have one name.
    """
    counts = scaled_counts(shape, shape.count if count is None else count)
    return _nodes(shape, counts)


def nodes_with_gpus(shape: Shape, gpu_nodes: int, count: int | None = None) -> Iterator[Node]:
    """Give the Node objects of a shape with so many GPU nodes.

    There are as many others as make ``count`` nodes in all; without it, in proportion to them.

    Raises ShapeError: the shape has no such nodes, or a number is out of range.
    """
    with_gpus = Shape(shape.about, [pool for pool in shape.pools if _has_gpus(pool)])
    others = Shape(shape.about, [pool for pool in shape.pools if not _has_gpus(pool)])
    if not with_gpus.count:
        raise ShapeError("the shape has no GPU nodes: use --nodes.")
    of_gpus = iter(scaled_counts(with_gpus, gpu_nodes))
    if count is None:
        share = gpu_nodes / with_gpus.count
        each = [min(pool.count, 1) and max(1, round(pool.count * share)) for pool in others.pools]
    else:
        each = _other_counts(others, gpu_nodes, count)
    of_others = iter(each)
    return _nodes(shape, [next(of_gpus if _has_gpus(pool) else of_others) for pool in shape.pools])


def _other_counts(others: Shape, gpu_nodes: int, count: int) -> list[int]:
    """Return how many nodes each pool without GPUs has when there are ``count`` in all."""
    if count > gpu_nodes and others.count:
        _check_count(count)
        return scaled_counts(others, count - gpu_nodes)
    if count == gpu_nodes:
        return [0] * len(others.pools)
    why = "the shape has none without GPUs" if count > gpu_nodes else "--nodes counts all nodes"
    raise ShapeError(f"{count} nodes, of which {gpu_nodes} have GPUs, cannot be: {why}.")


def _has_gpus(pool: Pool) -> bool:
    listed = pool.capacity | pool.allocatable
    return any(counts_gpus(name) and str(amount) != "0" for name, amount in listed.items())


def scaled_counts(shape: Shape, count: int) -> list[int]:
    """Return how many nodes each pool has when there are ``count`` in all.

    What is left over by rounding goes to the pools that lost most by it; as long as there are
    enough nodes, no pool that has any stays empty. Raises ShapeError.
    """
    _check_count(count)
    wanted = [pool.count for pool in shape.pools]
    used = [index for index, many in enumerate(wanted) if many]
    least = 1 if count >= len(used) else 0
    exact = [many * count / shape.count for many in wanted]
    given = [max(int(share), least) if wanted[i] else 0 for i, share in enumerate(exact)]
    while sum(given) < count:
        given[max(used, key=lambda i: (exact[i] - given[i], -i))] += 1
    while sum(given) > count:
        larger = [i for i in used if given[i] > least]
        given[min(larger, key=lambda i: (exact[i] - given[i], i))] -= 1
    return given


def _check_count(count: int) -> None:
    if not 1 <= count <= NODES_MAX:
        raise ShapeError(f"{count} nodes cannot be: give a number from 1 to {NODES_MAX}.")


def _nodes(shape: Shape, counts: Sequence[int]) -> Iterator[Node]:
    seen: set[str] = set()
    for pool, count in zip(shape.pools, counts, strict=True):
        for index in range(count):
            node = _node(pool, index)
            name = node["metadata"]["name"]
            if name in seen:
                raise ShapeError(
                    f"pool {pool.name}: two nodes are named {name}. Put {{index}} into nodeName."
                )
            seen.add(name)
            yield node


def _node(pool: Pool, index: int) -> Node:
    numbers = _numbers(pool, index)
    name = fill(pool.node_name.replace("{pool}", pool.name), numbers)
    own = {"kubernetes.io/hostname": name}
    labels = {key: fill(value, numbers) for key, value in pool.labels.items()}
    node: Node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**_BASE_LABELS, **own, **labels}},
        "spec": {},
        "status": {
            "capacity": dict(_texts(pool.capacity)),
            "allocatable": {**_texts(pool.capacity), **_texts(pool.allocatable)},
        },
    }
    if pool.annotations:
        node["metadata"]["annotations"] = {
            key: fill(value, numbers) for key, value in pool.annotations.items()
        }
    if pool.taints:
        node["spec"]["taints"] = [msgspec.to_builtins(taint) for taint in pool.taints]
    return node


def _numbers(pool: Pool, index: int) -> dict[str, int]:
    """Return what patterns may use: the node's index, and for each level its number and place."""
    numbers = {"index": index}
    for level in pool.levels:
        numbers[level.name] = level.first + index // level.nodes
        numbers[f"{level.name}.position"] = index % level.nodes
    return numbers


def _texts(amounts: Mapping[str, Amount]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _check_pool(pool: Pool, where: str) -> None:
    _check_amounts(pool.capacity, f"{where}.capacity")
    _check_amounts(pool.allocatable, f"{where}.allocatable")
    for name in ("cpu", "memory", "pods"):
        if name not in pool.capacity:
            raise ShapeError(f"{where}.capacity: {name} is missing. Every node has some.")
    names = [level.name for level in pool.levels]
    twice = next((name for name in names if names.count(name) > 1 or name == "index"), None)
    if twice is not None:
        raise ShapeError(f"{where}.levels: {twice} is there already. Give it another name.")
    for smaller, larger in zip(pool.levels, pool.levels[1:], strict=False):
        if larger.nodes % smaller.nodes:
            raise ShapeError(
                f"{where}.levels: {larger.nodes} nodes of a {larger.name} are not whole "
                f"{smaller.name}s of {smaller.nodes}. Write levels from small to large, each a "
                "multiple of the one before."
            )
    try:
        _check_texts(pool, where)
    except PatternError as error:
        raise ShapeError(f"{where}: {error}.") from error


def _check_amounts(amounts: Mapping[str, Amount], where: str) -> None:
    for name, amount in amounts.items():
        try:
            parse_amount(name, str(amount))
        except QuantityError as error:
            raise ShapeError(f"{where}.{name}: {error}.") from error


def _check_texts(pool: Pool, where: str) -> None:
    """Check names and labels by those of the first and the last node."""
    for index in {0, max(0, pool.count - 1)}:
        metadata = _node(pool, index)["metadata"]
        if not _NODE_NAME.fullmatch(metadata["name"]):
            raise ShapeError(
                f"{where}.nodeName: {metadata['name']!r} is no name of a node. Use a-z, 0-9, - "
                "and dots."
            )
        for key, value in metadata["labels"].items():
            if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
                raise ShapeError(
                    f"{where}.labels: {key}: {value!r} is no label. Values have up to 63 letters, "
                    "digits, -, _ and dots."
                )


def _explained(error: str, source: str) -> str:
    match = _AT.fullmatch(error)
    what, path = match.groups() if match else (error, "")
    what = what.replace("`", "").replace("Object", "this")
    place = f"{source}: {path}: " if path else f"{source}: "
    unknown = re.search(r"unknown field (\S+)", what)
    if "Expected str" in what:
        return f"{place}{what}. Put the value in quotes."
    if unknown is None:
        return f"{place}{what}. The format is described in docs/users/shapes.md."
    fields = _fields_of(path)
    close = difflib.get_close_matches(unknown[1], fields, n=1)
    meant = f"Did you mean {close[0]}?" if close else f"The fields here are {', '.join(fields)}."
    return f"{place}there is no field {unknown[1]}. {meant}"


def _fields_of(path: str) -> tuple[str, ...]:
    kinds: list[tuple[str, type[Struct]]] = [("taints", Taint), ("levels", Level), ("pools", Pool)]
    kind = next((kind for word, kind in kinds if word in path), Shape)
    return tuple(kind.__struct_encode_fields__)


@functools.cache
def _preset_names() -> tuple[str, ...]:
    files = resources.files(__package__).joinpath("presets").iterdir()
    return tuple(sorted(file.name[:-5] for file in files if file.name.endswith(".yaml")))
