"""How a test's server is closed without leaving anything to the tests after it."""

import asyncio

_STEPS = 6
"""Of the loop: see that somebody waits, accept, make the transport, tell the protocol."""


async def take_who_waits() -> None:
    """Let the loop take the connections that were made already, before its server is closed.

    asyncio makes the transport of a connection in a task of its own; if the server is closed before
    that has run, the transport is never closed, and whichever test runs when it is collected fails
    with a ResourceWarning. A client that gives up early, on a busy machine, is enough for that.
    """
    for _ in range(_STEPS):
        await asyncio.sleep(0)
