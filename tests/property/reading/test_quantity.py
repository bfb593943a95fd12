"""Quantities agree with an independent slow reference, keep their order, and never surprise."""

import re
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorate.core.model.quantity import (
    QUANTITY_MAX,
    QuantityError,
    format_amount,
    is_node_resource,
    parse_amount,
    parse_quantity,
)

SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
SUFFIXES |= {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
SUFFIXES |= {f"{letter}i": 2 ** (10 * (i + 1)) for i, letter in enumerate("KMGTPE")}


def reference(text):
    """The exact value, or None, by splitting the text instead of matching it."""
    sign = -1 if text[:1] == "-" else 1
    body = text[1:] if text[:1] in ("+", "-") else text
    digits = len(body) - len(body.lstrip("0123456789."))
    number, suffix = body[:digits], body[digits:]
    if number.count(".") > 1 or not number.strip("."):
        return None
    whole, _, fraction = number.partition(".")
    value = Fraction(int((whole + fraction) or "0"), 10 ** len(fraction))
    if suffix in SUFFIXES:
        return sign * value * SUFFIXES[suffix]
    if suffix[:1] in ("e", "E") and re.fullmatch(r"[+-]?[0-9]{1,3}", suffix[1:], re.ASCII):
        return sign * value * Fraction(10) ** int(suffix[1:])
    return None


numbers = st.from_regex(r"\A[0-9]{0,12}(\.[0-9]{0,12})?\Z")
suffixes = st.sampled_from([*SUFFIXES]) | st.from_regex(r"\A[eE][+-]?[0-9]{1,3}\Z")
written = st.builds(
    lambda sign, number, suffix: sign + number + suffix,
    st.sampled_from(["", "+", "-"]),
    numbers,
    suffixes | st.text(max_size=3),
)


@given(written, st.booleans())
@example("1E", False)
@example("1E3", False)
@example("1e", False)
@example("1ei", False)
@example("-0", False)
@example(".", False)
@example("1.Ki", True)
@example("٣", False)
@example("9007199254740992", False)
@example("9007199254740993", False)
def test_a_quantity_is_the_exact_value_rounded_up(text, milli):
    exact = reference(text)
    units = None if exact is None else ceil(exact * (1000 if milli else 1))
    if units is None or exact < 0 or units > QUANTITY_MAX:
        with pytest.raises(QuantityError):
            parse_quantity(text, milli=milli)
    else:
        assert parse_quantity(text, milli=milli) == units


@given(st.text(max_size=80))
def test_any_text_is_a_quantity_or_a_quantity_error(text):
    try:
        assert 0 <= parse_quantity(text) <= QUANTITY_MAX
    except QuantityError as error:
        said = str(error)
        assert len(said) < 400


amounts = st.decimals(0, 10**6, places=4)


@given(amounts, amounts, st.sampled_from(["m", "", "k", "Ki", "Mi"]), st.booleans())
def test_more_is_never_less(one, other, suffix, milli):
    low, high = sorted((one, other))
    assert parse_quantity(f"{low}{suffix}", milli=milli) <= parse_quantity(
        f"{high}{suffix}", milli=milli
    )


@given(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"]),
    st.integers(0, QUANTITY_MAX) | st.integers(0, 2**20).map(lambda units: units * 2**20),
)
def test_what_a_person_reads_is_the_exact_amount(resource, amount):
    assert parse_amount(resource, format_amount(resource, amount)) == amount


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 16 * 2**30, "16Gi"),
        ("memory", 3 * 2**29, "1.5Gi"),
        ("memory", 1064 * 2**20, "1064Mi"),
        ("memory", 2**30 - 1, "1073741823"),
        ("memory", 0, "0"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_as_a_person_would_write_them(resource, amount, text):
    assert format_amount(resource, amount) == text


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("cpu", True),
        ("memory", True),
        ("ephemeral-storage", True),
        ("hugepages-1Gi", True),
        ("attachable-volumes-aws-ebs", True),
        ("nvidia.com/gpu", True),
        ("sunk.coreweave.com/accelerator", True),
        ("kubernetes.io/batch-cpu", True),
        ("pods", False),
        ("storage", False),
        ("requests.cpu", False),
        ("requests.nvidia.com/gpu", False),
    ],
)
def test_which_resources_a_node_is_compared_for(name, counted):
    assert is_node_resource(name) is counted
