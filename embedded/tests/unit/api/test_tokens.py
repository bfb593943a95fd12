"""Bearer tokens: whose they are, how long, and for whom."""

import base64
import json

import pytest

from pocketkube.api.rights.tokens import ISSUER, Tokens, requested
from pocketkube.api.writing import User
from pocketkube.errors import ApiError

ACCOUNT = {"metadata": {"name": "bot", "namespace": "t1", "uid": "uid-1"}}
USER = User(
    "system:serviceaccount:t1:bot",
    ("system:serviceaccounts", "system:serviceaccounts:t1", "system:authenticated"),
    "uid-1",
)


class Clock:
    now_s = 1_795_262_400.5

    def __call__(self) -> float:
        return self.now_s


UIDS = {("t1", "bot"): "uid-1"}


def make(secret: bytes = b"secret", uids: dict = UIDS) -> tuple[Tokens, Clock]:
    clock = Clock()
    return Tokens(secret, clock, lambda *account: uids.get(account, "")), clock


def claims_of(token: str) -> dict:
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def test_a_token_that_was_added_stands_for_its_user():
    tokens, _ = make()
    tokens.add("letmein", User("admin", ("system:masters",)))
    assert tokens.user_of("letmein") == User("admin", ("system:masters", "system:authenticated"))
    assert tokens.user_of("letmeout") is None


def test_a_token_of_a_service_account_stands_for_it():
    tokens, _ = make()
    assert tokens.user_of(tokens.issue(ACCOUNT)) == USER


def test_a_token_expires_also_when_it_is_known():
    tokens, clock = make()
    token = tokens.issue(ACCOUNT, lasts_s=600)
    clock.now_s += 599
    assert tokens.user_of(token) == USER
    clock.now_s += 1
    assert tokens.user_of(token) is None
    clock.now_s -= 1000
    assert tokens.user_of(token) == USER


def test_a_token_is_good_after_a_restart_with_the_same_secret_only():
    token = make()[0].issue(ACCOUNT)
    assert make()[0].user_of(token) == USER
    assert make(b"other")[0].user_of(token) is None


@pytest.mark.parametrize("token", ["", ".", "a.b.c", "ä.b.c", "a.b.ä", "...", "x" * 5000])
def test_what_is_no_token_stands_for_nobody(token):
    tokens, _ = make()
    assert tokens.user_of(token) is None


def test_a_token_that_was_changed_stands_for_nobody():
    tokens, _ = make()
    head, body, signature = tokens.issue(ACCOUNT).split(".")
    claims = {**claims_of(f".{body}"), "sub": "system:serviceaccount:kube-system:admin"}
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    assert tokens.user_of(f"{head}.{forged}.{signature}") is None
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    assert tokens.user_of(f"{none}.{body}.") is None


def test_a_token_is_void_when_its_account_is_gone_or_another():
    uids = dict(UIDS)
    tokens, _ = make(uids=uids)
    token = tokens.issue(ACCOUNT)
    assert tokens.user_of(token) == USER
    uids["t1", "bot"] = "uid-2"
    assert tokens.user_of(token) is None
    uids.clear()
    assert tokens.user_of(token) is None


def test_a_token_for_others_is_not_for_the_api():
    tokens, _ = make()
    token = tokens.issue(ACCOUNT, audiences=["vault"])
    assert tokens.user_of(token) is None


def test_a_token_request_is_answered():
    tokens, clock = make()
    spec = {"expirationSeconds": 700}
    answer = requested(tokens, ACCOUNT, {"spec": spec}, clock.now_s)
    token = answer["status"].pop("token")
    assert answer == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": "bot",
            "namespace": "t1",
            "uid": "uid-1",
            "creationTimestamp": "2026-11-21T12:00:00Z",
        },
        "spec": {"audiences": [ISSUER], "expirationSeconds": 700, "boundObjectRef": None},
        "status": {"expirationTimestamp": "2026-11-21T12:11:40Z"},
    }
    assert tokens.user_of(token) == USER


def test_a_token_request_for_a_pod_is_refused():
    tokens, clock = make()
    bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}
    with pytest.raises(ApiError, match="this cluster binds tokens to no objects"):
        requested(tokens, ACCOUNT, {"spec": bound}, clock.now_s)
