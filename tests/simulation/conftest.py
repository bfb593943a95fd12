import pytest
import structlog

from simulate import logs


@pytest.fixture(autouse=True)
def scheduler_log():
    """Send the scheduler's log to the simulation, and back to where it went afterwards."""
    before = structlog.get_config()
    logs.set_up(traced=False)
    yield
    structlog.configure(**before)
