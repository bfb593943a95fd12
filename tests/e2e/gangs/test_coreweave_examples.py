"""CoreWeave's two examples, unmodified, as its users apply them."""

import pytest

from tools.objects import SIGS
from tools.testing import wait_for

pytestmark = pytest.mark.core

POD_GROUP_EXAMPLE = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: pg1
spec:
  scheduleTimeoutSeconds: 60
  minMember: 4
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: pause
spec:
  replicas: 2
  selector:
    matchLabels:
      app: pause
  template:
    metadata:
      labels:
        app: pause
        pod-group.scheduling.sigs.k8s.io: pg1
    spec:
      schedulerName: cw-coscheduler
      containers:
        - name: pause
          image: registry.k8s.io/pause:3.6
"""

SENTENCE = "2 of 4 members exist; Deployment pause makes 2"


def test_the_podgroup_example_waits_says_why_and_starts_whole_when_scaled(world):
    world.nodes(2)
    world.apply(POD_GROUP_EXAMPLE)
    assert world.wait_condition(SENTENCE) == SENTENCE
    world.wait_event("FailedScheduling", SENTENCE)
    explanation = world.why("pg1")
    assert explanation["message"] == SENTENCE
    assert explanation["reason"] == "OwnerMakesTooFew"
    assert world.bound() == 0

    world.scale("pause", 4)
    wait_for(lambda: world.running("app=pause") == 4, "all four run")
    assert len(world.events("Scheduled")) or world.wait_event("Scheduled", "Successfully assigned")
    wait_for(
        lambda: world.group("pg1", SIGS)["status"]["phase"] == "Running",
        "the PodGroup's phase is Running",
    )


def label_example(min_available: str, replicas: int) -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      app: nginx
  template:
    metadata:
      name: nginx
      labels:
        app: nginx
        pod-group.scheduling.sigs.k8s.io/name: nginx
        pod-group.scheduling.sigs.k8s.io/min-available: "{min_available}"
    spec:
      schedulerName: coscheduler
      containers:
        - name: nginx
          image: nginx
"""


def test_the_label_example_starts_when_min_available_pods_exist(world):
    world.nodes(1)
    world.apply(label_example("2", replicas=1))
    world.wait_condition("1 of 2 members exist; Deployment nginx makes 1")
    world.stays_unbound()
    world.scale("nginx", 2)
    wait_for(lambda: world.running("app=nginx") == 2, "both run")
