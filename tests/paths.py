"""Where things are in a checkout, for tests wherever they stand."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
