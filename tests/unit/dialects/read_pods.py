"""A scheduler that is told of pods as the API server writes them, for tests of whole dialects."""

import json

from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Explanation
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.watch.nodes import decode_node
from quorate.shell.watch.pod.decoding import PodDecoder
from tools import objects

NOW_S = 1.0


class Cluster:
    """Nodes and pods of one namespace; each pod asks for one core."""

    def __init__(self, cores: int) -> None:
        self.scheduler = Scheduler(Policy(), api_words())
        self._decoder = PodDecoder(frozenset({"quorate"}))
        node = objects.node("n0", allocatable={"cpu": str(cores), "pods": "110"})
        self.scheduler.observe([decode_node(json.dumps(node).encode())])

    def pod(self, name: str, labels: dict | None = None, annotations: dict | None = None) -> None:
        where = {"namespace": "team", "uid": f"uid-{name}"}
        pod = objects.pod(name, labels=labels, annotations=annotations, metadata=where)
        self.scheduler.observe([self._decoder.news(json.dumps(pod).encode())])

    def planned(self) -> list[str]:
        """Decide once; return the names of the pods that get a node."""
        plan = self.scheduler.decide(NOW_S)
        return sorted(bind.name for gang in plan.gangs for bind in gang.binds)

    def why(self, pod: str) -> Explanation:
        """Return why the gang of a pod stands where it stands."""
        key = self.scheduler.cluster.pods[f"uid-{pod}"].gang.key
        said = self.scheduler.explainer(NOW_S).explain(key)
        assert said is not None
        return said
