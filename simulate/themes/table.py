"""All themes, and which of them a seed draws."""

from __future__ import annotations

from simulate.cluster.theme import Theme
from simulate.cluster.world import World
from simulate.themes.devices import Devices
from simulate.themes.load import Load
from simulate.themes.namespaces import Namespaces
from simulate.themes.neighbours import Neighbours
from simulate.themes.preemption import Preemption
from simulate.themes.priorities import Priorities
from simulate.themes.relabelled import Relabelled
from simulate.themes.restarts import Restarts
from simulate.themes.topology import Topology
from simulate.themes.volcano import Volcano
from simulate.themes.volumes import Volumes

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
