"""The frame of every controller, and what all controllers share. Called by ``manager``."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from pocketkube.api.api import Api
from pocketkube.api.background import Recorder, WorkQueue
from pocketkube.controllers.pod_table import PodFacts, PodTable
from pocketkube.objects import Object, name_of, namespace_of
from pocketkube.store.store import Event

Key = tuple[str, str]
"""Namespace and name of what is to be looked at."""

Work = Iterator[None] | None
"""What ``reconcile`` gives: None when all is done, or steps of about one write each."""

SETTLE_S = 0.02
"""How long a change of one pod may wait for others, so that one status tells of all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all controllers use."""

    api: Api
    pods: PodTable
    recorder: Recorder
    queue: WorkQueue[tuple[Controller, Hashable]]


class Controller:
    """Brings what is there nearer to what is wanted, key by key.

    A subclass names the ``buckets`` whose events it gets. ``on_event`` and ``on_pod`` are called in
    the middle of somebody's write: they note facts and call ``enqueue``. ``reconcile`` is called
    later, for one key at a time; it may be a generator that yields after each write.
    """

    buckets: ClassVar[tuple[str, ...]] = ()
    everything: ClassVar[bool] = False  #: gets the events of every bucket instead
    pods_matter: ClassVar[bool] = False  #: gets ``on_pod``
    component: ClassVar[str] = ""  #: name of the source of its Events

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.api = shared.api
        self.pods = shared.pods

    def on_event(self, event: Event) -> None:
        """Note what happened to one object. As it is: its key is enqueued."""
        self.enqueue((event.entry.namespace, event.entry.name))

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Note what happened to one pod: before is None when it is new, after when it is gone."""

    def start(self) -> None:
        """Look at what was there before: all of it was told to ``on_event`` and the pod table."""

    def reconcile(self, key: Hashable) -> Work:
        """Do what is to be done for one key. May raise ApiError: then it is tried again later."""
        raise NotImplementedError

    def enqueue(self, key: Hashable, delay_s: float = 0.0) -> None:
        """Have ``reconcile`` called with this key, after a delay."""
        self.shared.queue.add((self, key), delay_s)

    def record(self, about: Object, reason: str, message: str, *, warning: bool = False) -> None:
        """Write an Event about an object."""
        kind = "Warning" if warning else "Normal"
        self.shared.recorder.record(self.component, about, kind, reason, message)

    def write_status(self, bucket: str, obj: Object, status: Object) -> bool:
        """Store a status if it is another one than the object's; tell whether it was."""
        if obj.get("status") == status:
            return False

        def change(found: Object) -> None:
            if found["metadata"]["uid"] == obj["metadata"]["uid"]:
                found["status"] = status

        self.api.amend(bucket, namespace_of(obj), name_of(obj), change, subresource="status")
        obj["status"] = status
        return True
