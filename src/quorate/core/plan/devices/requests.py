"""What claims ask for, with their device classes looked up; and the nodes that they may be on.

``Ask`` is the part of a pod class's identity that its claims make up: pods whose claims are alike
have equal asks, however their claims are called.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.model import DeviceClass, SelectorTerm
from quorate.core.model.devices import DeviceChoice, DeviceConfig, DeviceConstraint

SCORE_OF_FIRST = 8
"""FirstAvailableDeviceRequestMaxSize: the score of a list's first choice."""


class Choice(NamedTuple):
    """One choice of a request and its class."""

    wanted: DeviceChoice
    device_class: DeviceClass

    def label(self, request: Request) -> str:
        """Return how an allocation names it."""
        return f"{request.name}/{self.wanted.name}" if request.is_list else request.name


class Request(NamedTuple):
    """A request: one choice, or a list of them."""

    name: str
    is_list: bool
    choices: tuple[Choice, ...]


class ClaimAsk(NamedTuple):
    """A claim that has no devices yet.

    ``shared`` is the claim's full name when other pods may use it too, else empty.
    """

    requests: tuple[Request, ...]
    constraints: tuple[DeviceConstraint, ...]
    config: tuple[DeviceConfig, ...]
    shared: str = ""


class HeldClaim(NamedTuple):
    """A claim that has devices: on which nodes they are (None: all), and what it scores.

    ``unusable`` says that one of its devices cannot be bound to.
    """

    nodes: tuple[SelectorTerm, ...] | None
    score: int
    unusable: bool = False


class Ask(NamedTuple):
    """What all claims of a pod ask for; ``problem`` says why none of them can be looked at."""

    claims: tuple[ClaimAsk | HeldClaim, ...] = ()
    problem: str = ""

    @property
    def open(self) -> tuple[ClaimAsk, ...]:
        """The claims that have no devices yet."""
        return tuple(one for one in self.claims if isinstance(one, ClaimAsk))

    @property
    def shares(self) -> bool:
        """Whether one of the claims without devices may be used by other pods too."""
        return any(one.shared for one in self.open)
