"""A scheduler behind a proxy that spoils answers, and a tenant beside it."""

from typing import NamedTuple

from tests.hostile.harness.faulty_server import Faulty
from tests.hostile.harness.neighbour import Neighbour
from tests.hostile.harness.target import Target
from tools.testing import wait_for


class Behind(NamedTuple):
    """``plain`` has gangs that need pods and nodes alone, ``neighbour`` gangs with objects."""

    proxy: Faulty
    target: Target
    plain: Neighbour
    neighbour: Neighbour

    def wait_ready(self) -> None:
        pages = [""]

        def is_ready() -> bool:
            pages[0] = self.target.running.page("/readyz")
            return pages[0].startswith("ok")

        try:
            wait_for(is_ready, "it is ready")
        except AssertionError as error:
            raise AssertionError(f"{error}: {pages[0]}") from error
