"""``python -m quorate.cli`` is the same as ``quorate``."""

from quorate.cli.entry import main

main()
