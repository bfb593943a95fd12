"""In whose name a request is: ``kubectl --as``, and ``Impersonate-User`` of other clients.

In: a request's headers, who may do what. Out: the user whose rights count, or ApiError. Source:
Kubernetes' documentation of user impersonation, and answers of a real API server 1.36. The right is
the verb ``impersonate``, not the finer ``impersonate-on:...``. Extra attributes are not kept.
"""

from __future__ import annotations

from multidict import MultiMapping

from pocketkube import errors
from pocketkube.api.rights.rbac import Authorizer
from pocketkube.api.writing import User

_SERVICE_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"


def wanted_of(headers: MultiMapping[str]) -> User | None:
    """Return whom the request wants to be, None for most. Raises ApiError (400): no name given."""
    name = headers.get("Impersonate-User", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    uid = headers.get("Impersonate-Uid", "")
    if name:
        return User(name, _completed(name, groups), uid)
    if groups or uid:
        raise errors.bad_request("requested groups or a UID without impersonating a user name")
    return None


def allowed(user: User, wanted: User, headers: MultiMapping[str], authorizer: Authorizer) -> bool:
    """Tell whether the user may act as the wanted one, in each thing that the headers name."""
    account = _service_account(wanted.name)
    if account:
        rights = [("", "serviceaccounts", "", *account)]
    else:
        rights = [("", "users", "", "", wanted.name)]
    for group in headers.getall("Impersonate-Group", ()):
        rights.append(("", "groups", "", "", group))
    if wanted.uid:
        rights.append((_AUTHENTICATION, "uids", "", "", wanted.uid))
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            rights.append((_AUTHENTICATION, "userextras", header[len(_EXTRA) :].lower(), "", value))
    return all(authorizer.allowed(user, "impersonate", *right) for right in rights)


def refused_verb(wanted: User, verb: str) -> str:
    """Return the verb that the sentence of a refusal names."""
    mode = "serviceaccount" if _service_account(wanted.name) else "user-info"
    return f"impersonate-on:{mode}:{verb}"


def _service_account(name: str) -> tuple[str, str] | None:
    """Return the namespace and name of ``system:serviceaccount:namespace:name``."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, account) if namespace and account else None


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Add the groups that such a user would have after logging in."""
    account = _service_account(name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    last = "system:unauthenticated" if name == "system:anonymous" else "system:authenticated"
    known = ("system:authenticated", "system:unauthenticated")
    return groups if any(one in groups for one in known) else (*groups, last)
