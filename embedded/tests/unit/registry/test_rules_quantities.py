import pytest

from pocketkube.schema.quantities import NANO, canonical_list, nano_units, stored


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("2000", "2k"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0Mi", "0"),
        ("1e3", "1e3"),
        ("-0.1", "-100m"),
        ("1n", "1m"),
        ("1500u", "2m"),
        ("frogs", "frogs"),
        ("1e1000000000", "1e1000000000"),
    ],
)
def test_a_quantity_is_stored_in_one_form_no_finer_than_thousandths(given, written):
    assert stored(given) == written


def test_amounts_compare_whatever_their_suffix():
    assert nano_units("1Gi") == nano_units("1024Mi") == 1024**3 * NANO
    assert nano_units("1G") < nano_units("1Gi")
    assert nano_units("-1") < 0 == nano_units("0")


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "1.2.3", "Gi", "1e1000000000"])
def test_what_is_no_quantity_raises(text):
    with pytest.raises(ValueError, match=r"quantit"):
        nano_units(text)


def test_lists_may_hold_numbers():
    resources = {"cpu": "1n", "memory": 1024, "nvidia.com/gpu": 8, "disk": 0.5}
    canonical_list(resources)
    assert resources == {"cpu": "1m", "memory": "1024", "nvidia.com/gpu": "8", "disk": "500m"}
