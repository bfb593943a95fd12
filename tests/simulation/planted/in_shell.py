"""Mistakes in what the shell does: commit, lease, watch. Each changes one thing by a ``patch``."""

from quorate.core.model import plan
from quorate.core.model.changes import BindFailed, BindFailure, PodBound
from quorate.shell.app import App
from quorate.shell.commit import binder
from quorate.shell.kube.lists.reflector import Reflector
from quorate.shell.lease.elector import Elector
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.pod import spec as pod_spec


def bind_without_uid(patch):
    make = binder._binding

    def without(job):
        body = make(job)
        del body["metadata"]["uid"]
        return body

    patch.setattr(binder, "_binding", without)


def conflict_is_success(patch):
    async def believe(self, bind, message, otherwise):
        return PodBound(bind.uid, bind.node)

    patch.setattr(binder.Binder, "_read_back", believe)


def lost_answer_is_failure(patch):
    real = binder.Binder._read_back

    async def give_up(self, job):
        bind = job.bind
        path = binder.pod_path(bind.namespace, bind.name, "binding")
        try:
            await self._client.post(path, binder._binding(job))
        except binder.TRANSIENT as error:
            return BindFailed(bind.uid, bind.node, BindFailure.REFUSED, error.message)
        except binder.NotFound:
            return BindFailed(bind.uid, bind.node, BindFailure.GONE)
        except binder.Conflict as error:
            return await real(self, bind, error.message, BindFailure.REFUSED)
        return PodBound(bind.uid, bind.node)

    patch.setattr(binder.Binder, "_bind", give_up)


def failed_bind_is_not_reported(patch):
    report = binder.Binder._settled

    def quiet(self, job, outcome):
        if isinstance(outcome, PodBound):
            report(self, job, outcome)

    patch.setattr(binder.Binder, "_settled", quiet)


def quorum_is_sealed_at_once(patch):
    submit = binder.Binder.submit

    def all_at_once(self, gang):
        submit(self, plan.GangBinds(**{**_fields(gang), "started": True}))

    patch.setattr(binder.Binder, "submit", all_at_once)


def leader_binds_after_its_lease(patch):
    patch.setattr(Elector, "is_leader", lambda self, now_s: self._lead_until_s > 0)


def nobody_asks_who_leads(patch):
    patch.setattr(App, "_may_write", lambda self: True)


def deletions_are_not_heard(patch):
    patch.setattr(Feed, "_gone", lambda self, kind, raw: None)


def a_cut_watch_goes_on_too_late(patch):
    real = Reflector._remember_version

    def skip(self, newest):
        real(self, newest)
        self._resource_version = str(int(self._resource_version) + 2)

    patch.setattr(Reflector, "_remember_version", skip)


def rules_between_pods_are_not_read(patch):
    patch.setattr(pod_spec, "required_terms", lambda *written: ())


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
