"""Say the seed of the run: at its start, and again when something failed."""

from tests.property.seeds import SEED


def pytest_report_header():
    return f"QUORATE_SEED={SEED}"


def pytest_terminal_summary(terminalreporter):
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"QUORATE_SEED={SEED} draws the same worlds again")
