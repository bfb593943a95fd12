"""Hooks of mkdocs: pages and files of the repository that are outside ``docs`` come with the site.

Called by mkdocs (``mkdocs.yml``). Examples, and the pages that stand at the repository's top, are
copied into the site, and links to them follow. The menu may name pages by a pattern.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "README.md": "index.md",
}
"""Pages at the top of the repository, and where the site has them; the home page is its README."""
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put each page that a pattern of the menu means into it, in the order of the names."""
    _fill(config.nav or [])
    return config


def _fill(menu: list[Any]) -> None:
    for entry in menu:
        for title, below in entry.items() if isinstance(entry, dict) else ():
            if isinstance(below, list):
                _fill(below)
            elif "*" in below:
                found = sorted(DOCS.glob(below))
                entry[title] = [page.relative_to(DOCS).as_posix() for page in found]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages at the top of the repository and the examples."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - an extra of its own

    outside = [(ROOT / name, there) for name, there in PAGES.items() if there != "index.md"]
    outside += [
        (path, path.relative_to(ROOT).as_posix()) for path in (ROOT / "examples").rglob("*.yaml")
    ]
    for path, there in outside:
        files.append(File.generated(config, there, abs_src_path=str(path)))
    return files


def on_page_markdown(text: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at where the site has their files."""
    back = {there: name for name, there in PAGES.items() if there != "index.md"}
    here = page.file.src_uri
    return relinked(text, back.get(here) or f"docs/{here}", here)


def relinked(text: str, source: str, there: str) -> str:
    """Return a page's text with its relative links as the site needs them.

    ``source`` is the page's path in the repository, ``there`` its path in the site.
    """

    def link(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith(("mailto:", "/")):
            return found[0]
        path = os.path.normpath(os.path.join(os.path.dirname(source), target))
        in_site = PAGES.get(path) or path.removeprefix("docs/")
        return found[1] + os.path.relpath(in_site, os.path.dirname(there) or ".") + found[3]

    return _LINK.sub(link, text)
