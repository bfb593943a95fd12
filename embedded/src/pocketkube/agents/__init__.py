"""The kubelets of all nodes in one: what they make of pods that are bound, and of nodes.

``Agents`` listens to the store and writes through ``api``: ``facts`` (what is read of objects),
``ground`` (does a node take a pod), ``pods`` and ``node_life``.
"""

from pocketkube.agents.agents import Agents
from pocketkube.agents.settings import Settings

__all__ = ["Agents", "Settings"]
