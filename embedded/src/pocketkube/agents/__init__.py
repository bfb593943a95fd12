"""The kubelets of all nodes in one: what they make of pods that are bound, and of nodes.

``Agents`` listens to the store and writes through ``api``; everything else here is pure: ``facts``
(what is read of objects), ``admission`` (does a node take a pod), ``pod_status`` and
``node_status`` (what is written), ``durations`` (for how long pods run).
"""

from pocketkube.agents.agents import Agents
from pocketkube.agents.settings import Settings

__all__ = ["Agents", "Settings"]
