"""A quick yes for bodies that need no slow walk: msgspec structs made from shapes.

Yes means that Go would read the body without a word and write the same fields back: no wrong type,
no unknown field, no null, nothing that is dropped or written in another form. Anything else, also
what is merely unusual, is no: then ``check.findings`` and ``roundtrip.pruned`` look closely.
"""

from __future__ import annotations

import functools
import operator
from typing import Annotated, Any, NoReturn

import msgspec

from pocketkube.schema.shape import Shape, Type

_DIGITS = "(?:[1-9][0-9]{0,2}|[1-9][0-9]{0,11}(?:[1-9][0-9]{2}|0[1-9][0-9]|00[1-9]))"
_QUANTITY = rf"^(?:0|{_DIGITS}[numkMGTPE]?|[1-9][0-9]{{0,2}}[KMGTPE]i)\Z"
_DAY = (
    "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_TIME = rf"^[12][0-9]{{3}}-{_DAY}T{_CLOCK}Z\Z"
_MICRO_TIME = rf"^[12][0-9]{{3}}-{_DAY}T{_CLOCK}\.[0-9]{{6}}Z\Z"
_BASE64 = (
    r"^(?:[A-Za-z0-9+/]{4})*"
    r"(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?\Z"
)
_BOUNDS = {"int32": 2**31, "int64": 2**63, "": 2**63}


class _True:
    """The type of a boolean that Go drops when it is false."""


class _Nothing:
    """The type of what only the slow walk understands, such as a type within itself."""


_ANYTHING = functools.reduce(operator.or_, (dict[str, Any], list[Any], str, int, float, bool))
_types: dict[Shape, Any] = {}  # of the document's shapes, which live as long as the process


class FastCheck:
    """Checks bodies of one of the document's shapes; for those of CRDs the answer is always no.

    The structs are made at the first check.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._decoder: msgspec.json.Decoder[Any] | None = None

    def accepts(self, raw: bytes) -> bool:
        """Tell whether nothing is wrong with the body, and nothing in it has to change."""
        if self._decoder is None:
            known = dict(_types)
            made = _type(self._shape, known, ())
            _types.update({shape: value for shape, value in known.items() if shape.name})
            self._decoder = msgspec.json.Decoder(made, dec_hook=_decode)
        try:
            self._decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True


def _decode(wanted: type, value: Any) -> Any:
    if wanted is _True and value is True:
        return _True()
    return _refuse()


def _refuse() -> NoReturn:
    raise ValueError("this needs the slow walk")


def _type(shape: Shape, known: dict[Shape, Any], above: tuple[Shape, ...]) -> Any:
    """Return the type that msgspec decodes; ``above`` are the shapes that are being made."""
    if shape.type is Type.OBJECT:
        if shape in above or shape.preserve_unknown or shape.schema is not None:
            return _Nothing
        if shape not in known:
            known[shape] = _struct(shape, known, (*above, shape))
        return known[shape]
    if shape.type in (Type.LIST, Type.MAP):
        item: Any = _ANYTHING if shape.item is None else _type(shape.item, known, above)
        return list[item] if shape.type is Type.LIST else dict[str, item]
    return _scalar(shape)


def _struct(shape: Shape, known: dict[Shape, Any], above: tuple[Shape, ...]) -> Any:
    fields, names = [], {}
    for number, (name, inner) in enumerate(shape.fields.items()):
        # JSON names such as ``from`` and ``$ref`` are no names of Python.
        attribute = f"f{number}"
        names[attribute] = name
        if name in shape.drops:
            fields.append((attribute, _not_empty(inner, known, above), None))
        else:
            fields.append((attribute, _type(inner, known, above), None))
    return msgspec.defstruct(
        "Fast", fields, rename=names, forbid_unknown_fields=True, gc=False, kw_only=True
    )


def _not_empty(shape: Shape, known: dict[Shape, Any], above: tuple[Shape, ...]) -> Any:
    """Return the type of a field that vanishes when it is empty, without its empty value."""
    if shape.type is Type.BOOLEAN:
        return _True
    if shape.type is Type.INTEGER:
        return Annotated[int, msgspec.Meta(ge=1, le=_BOUNDS.get(shape.format, 2**31) - 1)]
    if shape.type in (Type.LIST, Type.MAP):
        return Annotated[_type(shape, known, above), msgspec.Meta(min_length=1)]
    if shape.type is Type.STRING:
        pattern = _pattern(shape)
        return Annotated[str, msgspec.Meta(min_length=1, pattern=pattern)]
    return _Nothing


def _scalar(shape: Shape) -> Any:
    match shape.type:
        case Type.STRING:
            pattern = _pattern(shape)
            return Annotated[str, msgspec.Meta(pattern=pattern)] if pattern else str
        case Type.INTEGER:
            bound = _BOUNDS.get(shape.format, 2**31)
            return Annotated[int, msgspec.Meta(ge=-bound, le=bound - 1)]
        case Type.BOOLEAN:
            return bool
        case Type.NUMBER:
            return float
        case Type.INT_OR_STRING:
            return Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | str
        case Type.QUANTITY:
            return Annotated[str, msgspec.Meta(pattern=_QUANTITY)]
    return _ANYTHING


def _pattern(shape: Shape) -> str | None:
    if shape.format == "date-time":
        return _MICRO_TIME if shape.name.endswith("MicroTime") else _TIME
    return _BASE64 if shape.format == "byte" else None
