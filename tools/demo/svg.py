"""The demo's view as an SVG: ``docs/demo.svg`` is drawn by ``make demo ARGS='--picture FILE'``.

In: pictures with their titles. Out: text. rich draws the view as on a terminal; the frame around it
is ours, because rich's own would fetch a font.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from tools.demo.view import Titled, view

_COLUMNS = 100
_BLACK, _RED, _GREEN, _YELLOW = (36, 41, 47), (207, 34, 46), (26, 127, 55), (154, 103, 0)
_BLUE, _MAGENTA, _CYAN, _WHITE = (9, 105, 218), (130, 80, 223), (27, 124, 131), (255, 255, 255)
_THEME = TerminalTheme(
    (250, 250, 252),
    _BLACK,
    [_BLACK, _RED, _GREEN, _YELLOW, _BLUE, _MAGENTA, _CYAN, _WHITE],
)
_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>make demo: two gangs, and room for one</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def svg(pictures: Sequence[Titled]) -> str:
    """Return the view of these clusters as the text of an SVG file."""
    console = Console(
        width=_COLUMNS, record=True, file=io.StringIO(), force_terminal=True, no_color=False
    )
    console.print(view(pictures))
    drawn = console.export_svg(theme=_THEME, code_format=_FRAME, unique_id="demo", title="")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"
