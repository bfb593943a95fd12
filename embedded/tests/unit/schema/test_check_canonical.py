"""Quantities, times and bytes, as a real server 1.36 gave them back, but for odd quantities."""

import pytest

from pocketkube.schema import canonical
from pocketkube.schema.quantities import quantity

QUANTITIES = {
    "0": "0",
    "00": "0",
    "0m": "0",
    "0Gi": "0",
    "1000m": "1",
    "1500m": "1500m",
    "1.5": "1500m",
    "0.5": "500m",
    ".5": "500m",
    "5.": "5",
    "+5": "5",
    "-1": "-1",
    "  5": "5",
    "2000": "2k",
    "10000P": "10E",
    "1E": "1E",
    "1e3": "1e3",
    "1E3": "1e3",
    "12e4": "120e3",
    "1e-3": "1e-3",
    "1e+21": "1e21",
    "1.5Gi": "1536Mi",
    "1024": "1024",
    "1024Ki": "1Mi",
    "1000Ki": "1000Ki",
    "1025Mi": "1025Mi",
    "2048Gi": "2Ti",
    "0.1Ki": "102400m",
    "-1024Ki": "-1Mi",
    "123456789012345678901": "123456789012345678901",
}


@pytest.mark.parametrize(("given", "expected"), QUANTITIES.items())
def test_quantities(given, expected):
    assert quantity(given) == expected


@pytest.mark.parametrize("given", sorted({*QUANTITIES.values()}))
def test_canonical_quantities_stay(given):
    assert quantity(given) == given


@pytest.mark.parametrize(
    "given", ["", "x", "5x", "1_0", "1.2.3", "5mm", "5-3", ".", "m", "1e999999999"]
)
def test_bad_quantities(given):
    with pytest.raises(ValueError, match="quantit"):
        quantity(given)


def test_what_is_smaller_than_a_billionth_is_a_billionth():
    assert quantity("0.0000000001") == "1n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
        ("2024-01-01T00:00:00.123456+02:00", "2023-12-31T22:00:00Z"),
        ("2024-01-01T00:00:00-05:30", "2024-01-01T05:30:00Z"),
        ("2024-01-01T5:00:00Z", "2024-01-01T05:00:00Z"),
    ],
)
def test_times_are_written_in_utc_and_whole_seconds(given, expected):
    assert canonical.time(given) == expected


def test_micro_times_keep_their_microseconds():
    given = "2024-01-01T00:00:00.123456+02:00"
    assert canonical.time(given, micro=True) == "2023-12-31T22:00:00.123456Z"


@pytest.mark.parametrize(
    ("given", "micro"),
    [
        ("yesterday", False),
        ("", False),
        ("2024-01-01", False),
        ("2024-02-20 05:00:00Z", False),
        ("2024-02-20t05:00:00z", False),
        ("2024-02-20T05:00:00", False),
        ("2024-01-01T00:00:00Z", True),
        ("2024-01-01T00:00:00.5Z", True),
        ("2024-01-01T00:00:00.1234567Z", True),
        ("2024-13-01T00:00:00Z", False),
        ("2024-02-30T00:00:00Z", False),
        ("2023-02-29T00:00:00Z", False),
        ("2024-02-20T25:00:00Z", False),
        ("2024-02-20T05:00:00Zx", False),
    ],
)
def test_what_is_no_time(given, micro):
    with pytest.raises(ValueError, match="parsing time") as caught:
        canonical.time(given, micro=micro)
    assert str(caught.value).startswith(f'parsing time "{given}"')


@pytest.mark.parametrize(
    ("given", "expected"), [("YQ==", "YQ=="), ("YQ=\n=", "YQ=="), ("YR==", "YQ=="), ("", "")]
)
def test_bytes_are_encoded_anew(given, expected):
    assert canonical.encoded_bytes(given) == expected


@pytest.mark.parametrize(
    ("given", "index"),
    [("YQ", 0), ("Y", 0), ("%%", 0), (" YQ==", 0), ("YQ==x", 4), ("YWJj%", 4), ("YQ==YQ==", 4)],
)
def test_bad_bytes(given, index):
    with pytest.raises(ValueError, match=f"illegal base64 data at input byte {index}$"):
        canonical.encoded_bytes(given)
