"""In which order what is to be said is sent: fair among namespaces, what is new first."""

from quorate.core.model import policy
from quorate.core.model.reasons import Reason
from quorate.core.telling.outbox import Outbox
from quorate.core.telling.sayings import SayCondition
from tests.unit.core.world import World, key


def test_a_namespace_with_much_to_say_holds_up_no_other():
    outbox, w = Outbox(), World()
    w.pod("loud", cpu=1)
    (pod,) = [entry.pod for entry in w.cluster.pods.values()]
    loud, quiet = key("loud"), type(key("x"))("other", "x-k8s", "quiet")
    for number in range(50_000):
        one = type(pod)(f"u{number}", "team", f"p{number}", "quorate", pod.spec)
        outbox.put(SayCondition(loud, one, Reason.POD_INVALID, ""), again=False)
    outbox.put(SayCondition(quiet, pod, Reason.POD_INVALID, ""), again=False)
    first = [one.key for one in outbox.take(0.0)]
    assert len(first) == policy.SAYINGS_AT_ONCE_MAX
    assert quiet in first[:2]


def test_what_is_new_goes_before_what_is_said_again():
    outbox, w = Outbox(), World()
    w.pod("one", cpu=1)
    (pod,) = [entry.pod for entry in w.cluster.pods.values()]
    pods = [type(pod)(f"u{n}", "team", f"p{n}", "quorate", pod.spec) for n in range(3)]
    said = [SayCondition(key("g"), one, Reason.POD_INVALID, "a") for one in pods]
    outbox.put(said[0], again=True)
    outbox.put(said[1], again=False)
    outbox.put(SayCondition(key("g"), pods[1], Reason.POD_INVALID, "b"), again=True)
    outbox.put(said[2], again=False)
    assert [(one.pod.uid, one.message) for one in outbox.take(0.0)] == [
        ("u1", "b"),
        ("u2", "a"),
        ("u0", "a"),
    ]
