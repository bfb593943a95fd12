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


def make(**options) -> tuple[Tokens, Clock]:
    clock = Clock()
    return Tokens(b"secret", clock, **options), clock


def claims_of(token: str) -> dict:
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def test_a_token_that_was_added_stands_for_its_user_until_it_is_removed():
    tokens, _ = make()
    tokens.add("letmein", User("admin", ("system:masters",)))
    assert tokens.user_of("letmein") == User("admin", ("system:masters", "system:authenticated"))
    assert tokens.user_of("letmeout") is None
    tokens.remove("letmein")
    assert tokens.user_of("letmein") is None


def test_a_token_of_a_service_account_stands_for_it():
    tokens, _ = make()
    assert tokens.user_of(tokens.issue(ACCOUNT)) == USER


def test_a_token_says_what_a_real_one_says():
    tokens, _ = make()
    claims = claims_of(tokens.issue(ACCOUNT))
    assert claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": 1_795_266_000,
        "iat": 1_795_262_400,
        "iss": ISSUER,
        "kubernetes.io": {"namespace": "t1", "serviceaccount": {"name": "bot", "uid": "uid-1"}},
        "nbf": 1_795_262_400,
        "sub": "system:serviceaccount:t1:bot",
    }


def test_two_tokens_of_one_second_differ():
    tokens, _ = make()
    assert tokens.issue(ACCOUNT) != tokens.issue(ACCOUNT)


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
    tokens, clock = make()
    token = tokens.issue(ACCOUNT)
    assert Tokens(b"secret", clock).user_of(token) == USER
    assert Tokens(b"other", clock).user_of(token) is None


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
    uids = {("t1", "bot"): "uid-1"}
    tokens, _ = make(account_uid=lambda namespace, name: uids.get((namespace, name), ""))
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
    assert tokens.reviewed(token, ["vault", "x"]) == (USER, ["vault"])
    why = f'token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]'
    assert tokens.reviewed(token, []) == f"[invalid bearer token, {why}]"


def find(bucket: str, namespace: str, name: str) -> dict | None:
    if (bucket, namespace, name) == ("pods", "t1", "p"):
        return {"metadata": {"name": "p", "namespace": "t1", "uid": "uid-p"}}
    return None


def test_a_token_request_is_answered():
    tokens, clock = make()
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    spec = {"expirationSeconds": 700, "boundObjectRef": reference}
    answer = requested(tokens, ACCOUNT, {"spec": spec}, find, clock.now_s)
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
        "spec": {"audiences": [ISSUER], "expirationSeconds": 700, "boundObjectRef": reference},
        "status": {"expirationTimestamp": "2026-11-21T12:11:40Z"},
    }
    assert tokens.user_of(token) == USER
    assert claims_of(token)["kubernetes.io"]["pod"] == {"name": "p", "uid": "uid-p"}


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        (
            {"expirationSeconds": 599},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            {"expirationSeconds": 2**33},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 8589934592: may not specify a duration larger than 2^32 seconds",
        ),
        (
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "nope"}},
            404,
            'pods "nope" not found',
        ),
        (
            {"boundObjectRef": {"kind": "Foo", "name": "nope"}},
            400,
            "cannot bind token to object of type /, Kind=Foo",
        ),
    ],
)
def test_a_token_request_that_cannot_be_is_refused(spec, code, message):
    tokens, clock = make()
    with pytest.raises(ApiError) as raised:
        requested(tokens, ACCOUNT, {"spec": spec}, find, clock.now_s)
    assert (raised.value.code, raised.value.message) == (code, message)
