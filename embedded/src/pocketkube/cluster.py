"""A whole cluster in one process: what ``quorate up``, the demo and tests start.

In: a folder for its files, nodes and manifests. Out: an API server on loopback, a kubeconfig, and
agents and controllers that act on what is written. A context manager::

    async with EmbeddedCluster(folder) as cluster:
        cluster.add(nodes)
        print(cluster.kubeconfig)
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pocketkube import access
from pocketkube.agents.agents import Agents
from pocketkube.agents.settings import Settings as AgentSettings
from pocketkube.api.api import Api
from pocketkube.api.definitions import Definitions
from pocketkube.api.rights.rbac import Authorizer
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.writing import User
from pocketkube.controllers.manager import Manager
from pocketkube.errors import ApiError
from pocketkube.objects import Object
from pocketkube.private_files import private_folder, write_private
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.server.handler import Handler
from pocketkube.server.http import HttpServer, prepare_certificates, tls_context
from pocketkube.store.journal import Journal
from pocketkube.store.store import Store

STATE_FILE = "state.journal"
_TOKEN_LASTS_S = 365 * 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a cluster is to be."""

    port: int = 0  # 0: any that is free
    durable: bool = False  # keep objects in the folder, across restarts
    seed: int | None = None  # of generated names, UIDs and run times; None: from the system
    agents: AgentSettings = field(default_factory=AgentSettings)
    runs_agents: bool = True  # else somebody else's kubelets have to, such as kwok
    runs_controllers: bool = True  # else a kube-controller-manager has to
    name: str = access.NAME  # of the context in the kubeconfig


class EmbeddedCluster:
    """One cluster. ``api`` is the way in from within the process; others use HTTP."""

    def __init__(
        self,
        folder: Path,
        *,
        now_s: Callable[[], float] = time.time,  # noqa: TID251  the one place that names it
        monotonic_s: Callable[[], float] = time.monotonic,
        options: Options | None = None,
    ) -> None:
        """Prepare files and state. Raises DataError: the folder's state cannot be used."""
        self._options = options or Options()
        private_folder(folder, (access.SECRETS_FILE, STATE_FILE))
        self.folder = folder
        document = Document.load()
        self._store = Store(Journal(folder / STATE_FILE) if self._options.durable else None)
        chance = random.Random(self._options.seed)
        self.registry = Registry(document.resources())
        self.api = Api(self._store, self.registry, now_s=now_s, chance=chance)
        Definitions(self.api)  # listens to the store from now on
        self.ca = prepare_certificates(folder)
        self._secrets = access.secrets_in(folder)
        self._tokens = Tokens(self._secrets.signing_key, now_s, self._account_uid)
        self._tokens.add(self._secrets.admin_token, User("admin", ("system:masters",)))
        self._handler = Handler(self.api, self._tokens, Authorizer(self._store), document)
        self._server = HttpServer(self._handler, tls_context(folder))
        # In this order, and before anything is written: both listen to the store from now on.
        self._runners: dict[str, Agents | Manager] = {}
        if self._options.runs_agents:
            self._runners["agents"] = Agents(self.api, monotonic_s, self._options.agents, chance)
        if self._options.runs_controllers:
            self._runners["controllers"] = Manager(self.api, monotonic_s)
        self._tasks: list[asyncio.Task[None]] = []
        self._add_missing(document.bootstrap)

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self._server.port}"

    @property
    def inner_server(self) -> str:
        """A URL of the API server without TLS, for parts of this process."""
        return f"http://127.0.0.1:{self._server.inner_port}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def version(self) -> str:
        """The version of Kubernetes that is spoken, such as v1.36.3."""
        return str(Document.load().version["gitVersion"])

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return self._store.count("nodes")

    def service_account_token(self, namespace: str, name: str) -> str:
        """Return a token of a ServiceAccount that lasts as long as the process may.

        Raises ApiError (404).
        """
        accounts = self.registry.named("v1", "serviceaccounts")
        account = self.api.get(accounts, namespace, name)
        return self._tokens.issue(account, lasts_s=_TOKEN_LASTS_S, audiences=[])

    def _account_uid(self, namespace: str, name: str) -> str:
        account = self.api.find("serviceaccounts", namespace, name)
        return "" if account is None else str(account["metadata"]["uid"])

    async def start(self) -> None:
        """Listen, and set agents and controllers to work. Raises ListenError."""
        await self._server.start(self._options.port)
        token, name = self._secrets.admin_token, self._options.name
        config = access.kubeconfig(self.server, self.ca, token, name=name)
        write_private(self.kubeconfig, config)
        self._tasks = [
            asyncio.create_task(runner.run(), name=name) for name, runner in self._runners.items()
        ]

    async def failed(self) -> None:
        """Wait until an agent or a controller ends, which they never should; raise its error."""
        if not self._tasks:
            await asyncio.Event().wait()
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """End watches, connections and tasks, and close files."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        self._handler.stop()
        await self._server.stop()
        self._store.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.stop()

    def add(self, objects: Iterable[Object]) -> None:
        """Create objects, such as nodes, or manifests in the order to apply them in.

        What is there already stays as it is. Raises ApiError.
        """
        self._add_missing(objects)

    def _add_missing(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            resource = self.registry.of_kind(obj["apiVersion"], obj["kind"])
            if resource is None:
                raise ValueError(f"no resource for {obj['apiVersion']} {obj['kind']}")
            namespace = obj["metadata"].get("namespace", "default" if resource.namespaced else "")
            try:
                self.api.create(resource, namespace, obj)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
