"""All themes, and which of them a seed draws."""

from __future__ import annotations

from quorate.simulate.cluster.theme import Theme
from quorate.simulate.cluster.world import World
from quorate.simulate.themes.devices import Devices
from quorate.simulate.themes.load import Load
from quorate.simulate.themes.namespaces import Namespaces
from quorate.simulate.themes.neighbours import Neighbours
from quorate.simulate.themes.preemption import Preemption
from quorate.simulate.themes.priorities import Priorities
from quorate.simulate.themes.relabelled import Relabelled
from quorate.simulate.themes.restarts import Restarts
from quorate.simulate.themes.topology import Topology
from quorate.simulate.themes.volcano import Volcano
from quorate.simulate.themes.volumes import Volumes

THEMES: dict[str, type[Theme]] = {
    theme.name: theme
    for theme in (
        Priorities,
        Preemption,
        Topology,
        Neighbours,
        Relabelled,
        Restarts,
        Volumes,
        Devices,
        Volcano,
        Namespaces,
        Load,
    )
}
_PLAIN = 0.2
"""Share of runs without any theme."""
_EACH = 0.22


def themes_of(world: World) -> list[Theme]:
    """Return the themes that a world's seed draws, in the order of the table."""
    chance = world.chance("themes")
    if chance.random() < _PLAIN:
        return []
    return [theme(world) for theme in THEMES.values() if chance.random() < _EACH]
