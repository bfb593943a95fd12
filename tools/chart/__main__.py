"""Command line: say which files of the chart are stale, or write them."""

import argparse
import sys

from tools.chart.making import CHART, ROOT, made, stale


def main(arguments: list[str] | None = None) -> int:
    """Check or write; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.chart", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what is stale")
    options = parser.parse_args(arguments)
    names = stale()
    for name in names:
        if options.write:
            (CHART / name).parent.mkdir(parents=True, exist_ok=True)
            (CHART / name).write_text(made()[name], encoding="utf-8")
        state = "written" if options.write else "stale; run: python -m tools.chart --write"
        print(f"{(CHART / name).relative_to(ROOT)}: {state}")
    if not names:
        print(f"{CHART.relative_to(ROOT)}: all that is made is as it would be made")
    return 1 if names and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
