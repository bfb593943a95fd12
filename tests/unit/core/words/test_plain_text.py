"""Foreign text made plain: the one function behind every door."""

import unicodedata

import pytest

from quorate.core.words.plain_text import plain, plain_lines

HIDDEN = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def test_no_hidden_character_of_unicode_comes_through():
    hidden = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) in HIDDEN]
    assert len(hidden) > 2000
    shown = plain("".join(hidden))
    assert shown.isascii()
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u00a0b", "a\\xa0b"),
    ],
)
def test_what_hides_is_written_out(text, shown):
    assert plain(text) == shown
    assert plain(shown) == shown


@pytest.mark.parametrize("text", ["", "0/7 nodes are available", "Größe 日本 🙂", "C:\\n"])
def test_what_is_plain_stays(text):
    assert plain(text) is text


def test_the_bound_counts_what_is_shown():
    assert plain("x" * 100, 20) == "x" * 16 + " ..."
    assert len(plain("\x1b" * 100, 20)) == 20
    assert plain("x" * 20, 20) == "x" * 20
    assert plain_lines("a\x1b\nb") == "a\\x1b\nb"
