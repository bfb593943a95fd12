"""Which event loop a test runs in."""

import asyncio

from simulate.virtual_loop import VirtualLoop


def pytest_asyncio_loop_factories(config, item):
    """Give tests that are marked ``virtual`` a loop whose time passes at once."""
    if item.get_closest_marker("virtual"):
        return {"virtual": VirtualLoop}
    return {"real": asyncio.new_event_loop}
