"""Jobs of operators: written by people, started by quorate, ended by the test as kubelets would."""

import json
from pathlib import Path

import pytest
import yaml

from tools.controlplane import Access, ApiError
from tools.harness.world import World
from tools.objects import VOLCANO
from tools.testing import wait_for

MANIFESTS = Path(__file__).parent / "manifests"
LABELS = "training.kubeflow.org"
COMMANDS = "bus.volcano.sh/v1alpha1"
ONE_POD = {"pods": "1", "nvidia.com/gpu": "1"}
"""What a node has: room for one pod, whichever, so that room is a number of pods."""

for_each_api = pytest.mark.parametrize(
    "api", ["scheduler-plugins-scheduler", "volcano"], indirect=True, scope="module"
)
"""For tests in which it does not matter how the scheduler is named: a flag for each API."""


def groups(world: World, api: str) -> list[dict]:
    """Return the PodGroups of the test's namespace."""
    return world.cluster.api("GET", world.path("podgroups", api=api))["items"]


def uids(pods: list[dict]) -> set[str]:
    return {one["metadata"]["uid"] for one in pods}


class Job:
    """A job of one test, in the test's namespace, and what its operator has made of it."""

    label = f"{LABELS}/job-name"

    def __init__(self, world: World, file: str, name: str = "") -> None:
        """Read its manifest; with ``name`` it is another job like that one."""
        self.manifest = yaml.safe_load((MANIFESTS / file).read_text())
        # Each test has a namespace of its own.
        self.manifest["metadata"].pop("namespace", None)
        self.manifest["metadata"]["name"] = name or self.manifest["metadata"]["name"]
        self.world = world
        self.name = self.manifest["metadata"]["name"]
        plural = f"{self.manifest['kind'].lower()}s"
        self._path = world.path(plural, self.name, self.manifest["apiVersion"])

    @property
    def _replicas(self) -> dict[str, dict]:
        """What it says of its replicas, by role."""
        return next(v for k, v in self.manifest["spec"].items() if "eplicaSpecs" in k)

    @property
    def selector(self) -> str:
        """The label selector of its pods."""
        return f"{self.label}={self.name}"

    @property
    def size(self) -> int:
        """How many pods it needs."""
        return sum(one["replicas"] for one in self._replicas.values())

    def with_replicas(self, **fields: object) -> "Job":
        """Change what is said of all of its replicas."""
        for one in self._replicas.values():
            one.update(fields)
        return self

    def with_workers(self, count: int) -> "Job":
        next(reversed(self._replicas.values()))["replicas"] = count
        return self

    def with_policy(self, **fields: object) -> "Job":
        """Change its runPolicy."""
        self.manifest["spec"].setdefault("runPolicy", {}).update(fields)
        return self

    def create(self) -> "Job":
        """Create it as ``kubectl apply`` would."""
        self.world.kubectl("apply", "-f", "-", manifest=json.dumps(self.manifest))
        return self

    def change(self, **spec: object) -> None:
        """Merge this into its spec."""
        self.world.patch(self._path, {"spec": spec})

    def annotate(self, text: str) -> None:
        """Have the operator look at it again."""
        self.world.patch(self._path, {"metadata": {"annotations": {"test": text}}})

    def delete(self) -> None:
        self.world.cluster.delete(self._path)

    def exists(self) -> bool:
        return self.world.cluster.exists(self._path)

    def is_(self, condition: str) -> bool:
        """Whether its own status says so."""
        status = self.world.cluster.api("GET", self._path).get("status", {})
        found = {one["type"]: one["status"] for one in status.get("conditions", [])}
        return found.get(condition) == "True"

    def pods(self, *roles: str) -> list[dict]:
        """Return its pods that are not being deleted, all or those of some roles."""
        found = self.world.pods(self.selector)
        return [
            one
            for one in found
            if "deletionTimestamp" not in one["metadata"] and (not roles or role(one) in roles)
        ]

    def leader(self) -> dict:
        """Return the pod whose end is the job's: the master or launcher, else the first worker."""
        found = self.pods("master", "launcher")
        return (found or sorted(self.pods("worker"), key=lambda one: one["metadata"]["name"]))[0]

    def followers(self) -> list[dict]:
        """Return the workers whose end is not the job's."""
        leader = self.leader()["metadata"]["uid"]
        return [one for one in self.pods("worker") if one["metadata"]["uid"] != leader]

    def running(self) -> list[dict]:
        return [one for one in self.pods() if one["status"]["phase"] == "Running"]

    def wait_too_few(self, words: str) -> None:
        """Wait until its pods and its group say so of its members, and see that none runs."""
        self.world.wait_condition(words, self.selector)
        self.world.wait_event("FailedScheduling", words)
        assert not self.running()

    def wait_running(self) -> None:
        """Wait until all of its pods run."""
        self.wait_runs(self.size)

    def wait_runs(self, count: int) -> None:
        """Wait until so many of its pods run."""
        wait_for(lambda: len(self.running()) == count, f"{count} pods of {self.name} run")

    def finish(self, *pods: dict) -> None:
        """Let the containers of these pods end well."""
        for one in pods:
            ended = {"metadata": {"annotations": {"quorate.dev/complete-after": "0s"}}}
            self.world.patch_pod(one["metadata"]["name"], ended)

    def complete(self) -> None:
        """Let its launcher end well, and so the job; one that has failed may still be there."""
        self.finish(*self.pods("launcher"))
        wait_for(lambda: self.is_("Succeeded"), "its status says so")

    def fail(self, pod: dict, code: int) -> None:
        """Let the containers of a pod end with this exit code."""
        ended = {"terminated": {"exitCode": code, "reason": "Error"}}
        statuses = [
            {**one, "ready": False, "state": ended} for one in pod["status"]["containerStatuses"]
        ]
        path = f"{self.world.path('pods', pod['metadata']['name'])}/status"
        self.world.patch(path, {"status": {"phase": "Failed", "containerStatuses": statuses}})

    def wait_runs_anew(self, pod: dict) -> None:
        """Wait until another pod of that name runs in its place."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]

        def found() -> bool:
            there = [one["metadata"] for one in self.running()]
            return any(one["name"] == name and one["uid"] != uid for one in there)

        wait_for(found, f"{name} is made anew and runs")


def role(pod: dict) -> str:
    """Return master, worker, ps or launcher, or the task of a Volcano job."""
    labels = pod["metadata"]["labels"]
    keys = f"{LABELS}/replica-type", f"{LABELS}/job-role", "volcano.sh/task-spec"
    return next(labels[key] for key in keys if key in labels)


def command(world: World, path: str, action: str) -> None:
    """Have Volcano's controllers do this to a job or queue, as its own command line does."""
    one = world.cluster.api("GET", path)
    target = {key: one["metadata"][key] for key in ("name", "uid")}
    target |= {"apiVersion": one["apiVersion"], "kind": one["kind"], "controller": True}
    whole = {
        "apiVersion": COMMANDS,
        "kind": "Command",
        "metadata": {"generateName": f"{target['name']}-", "ownerReferences": [target]},
        "target": target,
        "action": action,
    }
    world.cluster.api("POST", world.path("commands", api=COMMANDS), whole)


_ADMITTED = {
    "Job": "batch.volcano.sh/v1alpha1/namespaces/default/jobs",
    "Queue": f"{VOLCANO}/queues",
}


def admits(cluster: Access, made: dict) -> bool:
    """Whether Volcano's admission would take a job or queue. It knows queues of a moment ago."""
    try:
        cluster.api("POST", f"/apis/{_ADMITTED[made['kind']]}?dryRun=All", made)
    except ApiError:
        return False
    return True


class VolcanoJob(Job):
    """A job of Volcano's own kind; its tasks are its replicas."""

    label = "volcano.sh/job-name"

    @property
    def _replicas(self) -> dict[str, dict]:
        return {one["name"]: one for one in self.manifest["spec"]["tasks"]}

    def group(self) -> dict:
        """Return its PodGroup, which is named by the job and its uid; {} if there is none."""
        found = groups(self.world, VOLCANO)
        mine = [one for one in found if one["metadata"]["name"].startswith(f"{self.name}-")]
        return mine[0] if mine else {}

    def phase(self) -> str:
        """Return the phase of its PodGroup."""
        return self.group().get("status", {}).get("phase", "")

    def is_(self, condition: str) -> bool:
        status = self.world.cluster.api("GET", self._path).get("status", {})
        return status.get("state", {}).get("phase") == condition

    def leader(self) -> dict:
        return min(self.pods(), key=lambda one: one["metadata"]["name"])

    def grow(self, count: int) -> None:
        """Have so many pods, all of which it needs: it lets nothing else of it be changed."""
        self.with_workers(count)
        last = len(self.manifest["spec"]["tasks"]) - 1
        # Not the whole job put back: its controller writes its status meanwhile.
        paths = "/spec/minAvailable", f"/spec/tasks/{last}/replicas"
        patch = [{"op": "replace", "path": path, "value": count} for path in paths]
        kind = "application/json-patch+json"
        self.world.cluster.api("PATCH", self._path, patch, content_type=kind)

    def command(self, action: str) -> None:
        command(self.world, self._path, action)
