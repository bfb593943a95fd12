"""Files, folders and standard input as texts: the only part of lint that touches a disk.

In: what the caller typed. Out: texts, and one line for each thing that could not be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from quorate.lint.check import Text

SUFFIXES = (".yaml", ".yml", ".json")
BYTES_MAX = 64 * 1024 * 1024
STDIN = "-"
_STDIN_SHOWN = "<stdin>"


def read(names: Sequence[str], stdin: Callable[[], BinaryIO]) -> tuple[list[Text], list[str]]:
    """Return the texts of files and folders (all their manifests, in order), and what failed."""
    texts: list[Text] = []
    failed: list[str] = []
    seen: set[str] = set()
    for name in names:
        for file, named in _files(name, failed):
            if file in seen:  # a file that is named twice is not a duplicate of itself
                continue
            seen.add(file)
            shown = _STDIN_SHOWN if file == STDIN else file
            try:
                if file == STDIN:
                    raw = stdin().read(BYTES_MAX + 1)
                else:
                    with Path(file).open("rb") as opened:
                        raw = opened.read(BYTES_MAX + 1)
                if len(raw) > BYTES_MAX:
                    failed.append(f"{shown}: larger than {BYTES_MAX >> 20} MiB; split it")
                    continue
                texts.append(Text(shown, raw.decode("utf-8"), named))
            except UnicodeDecodeError as error:
                failed.append(f"{shown}: not UTF-8 at byte {error.start}: is it a manifest?")
            except OSError as error:
                failed.append(f"{shown}: {_reason(error)}")
    return texts, failed


def _files(name: str, failed: list[str]) -> list[tuple[str, bool]]:
    """Return the files of one argument, and whether the caller named each."""
    if name == STDIN:
        return [(STDIN, True)]
    if not Path(name).is_dir():
        return [(name, True)]
    found = []
    for folder, below, files in os.walk(name, onerror=lambda e: failed.append(f"{name}: {e}")):
        below[:] = sorted(one for one in below if not one.startswith("."))
        found += [
            (str(Path(folder) / file), False)
            for file in sorted(files)
            if file.lower().endswith(SUFFIXES)
        ]
    if not found:
        failed.append(f"{name}: no {', '.join('*' + suffix for suffix in SUFFIXES)} in this folder")
    return found


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file; give a manifest, a folder of them, or - for standard input"
    return (error.strerror or str(error)).lower()
