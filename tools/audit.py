"""Audit what we depend on: ``python -m tools.audit [--list]``; a step of ``make check``.

In: requirements.lock and the installed packages. Out: one line, and exit code 1 when something is
wrong. Always checked, without a network: the lock pins each package and has its hashes, none comes
from an address of its own, each pyproject.toml gives a range for what runs and a pin for what
tests, the locked version is within both, and each package that quorate runs with has a licence that
we permit. Known vulnerabilities are asked for at most once a day, of
the OSV service (https://google.github.io/osv.dev/post-v1-querybatch/); where it cannot be reached
the last answer counts, and without one the line says so.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, cast

from packaging.requirements import InvalidRequirement, Requirement

from tools.controlplane.versions import cache_root

EXTRAS = ("cli", "devices", "embedded")
"""What people install; ``test`` is for those who change quorate."""
ROOT = Path(__file__).resolve().parent.parent
OURS = ("quorate-scheduler", "pocketkube")
"""The distributions of this repository; no lock pins them."""
SERVICE = os.environ.get("QUORATE_ADVISORIES_URL", "https://api.osv.dev/v1/querybatch")
TIMEOUT_S = 5.0
ASK_AGAIN_S = 3600.0  # after the service could not be reached
ANSWER_BYTES_MAX = 16 * 1024 * 1024

ACCEPTED: Mapping[str, str] = {}
"""Vulnerabilities that do not concern us, by id, each with the reason."""

PERMITTED = frozenset(
    {"0BSD", "Apache 2.0", "Apache-2.0", "Apache Software License", "BSD License", "BSD-2-Clause"}
    | {"BSD-3-Clause", "CC0-1.0", "ISC", "ISC License", "ISC License (ISCL)", "MIT", "MIT License"}
    | {"MIT-0", "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)", "PSF-2.0", "Zlib"}
)
_PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+_-]+)")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


class AuditError(Exception):
    """Something is wrong with what we depend on; each line of the text is one thing."""


class UnreachableError(Exception):
    """The service gave no answer that can be used."""


class Answer(NamedTuple):
    """What is known of vulnerabilities; ``said`` is how, and since when."""

    findings: dict[str, list[str]]
    said: str


def project_files() -> list[Path]:
    """Return the pyproject.toml of each distribution in this repository."""
    return [ROOT / "pyproject.toml", *sorted(ROOT.glob("*/pyproject.toml"))]


def canonical(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(text: str) -> dict[str, str]:
    """Return the version of each package of a lock file. Raises AuditError."""
    versions: dict[str, str] = {}
    wrong = []
    without_comments = re.sub(r"(?m)^\s*#.*$", "", text)
    for line in re.sub(r"\\\n", " ", without_comments).splitlines():
        if not line.strip():
            continue
        requirement, *hashes = line.split(" --hash=")
        pinned = _PINNED.fullmatch(requirement.partition(" ;")[0].strip())
        name = requirement.strip()[:60]
        if pinned is None or "://" in line or " @ " in line:
            wrong.append(f"{name}: not pinned as name==version")
        elif not hashes or not all(_HASH.fullmatch(f"--hash={one.strip()}") for one in hashes):
            wrong.append(f"{name}: has no sha256 hash, or something that is none")
        elif canonical(pinned[1]) in versions:
            wrong.append(f"{name}: is there twice")
        else:
            versions[canonical(pinned[1])] = pinned[2]
    if wrong:
        raise AuditError("\n".join(f"requirements.lock: {one}" for one in wrong))
    return versions


def check_requirements(
    project: Mapping[str, Any], versions: Mapping[str, str], ours: Iterable[str] = OURS
) -> None:
    """Compare one pyproject.toml with the lock; ``ours`` are distributions of this repository.

    What people install has ranges with a lower bound, so that it can share an environment. The
    extra ``test`` has pins. Raises AuditError.
    """
    wrong = []
    own = {canonical(name) for name in ours}
    extras = project["project"].get("optional-dependencies", {})
    for part, wanted in {"": project["project"]["dependencies"], **extras}.items():
        for written in wanted:
            try:
                requirement = Requirement(written)
            except InvalidRequirement as error:
                wrong.append(f"pyproject.toml: {written!r}: {error}")
                continue
            name = canonical(requirement.name)
            if name in own:
                continue
            version = versions.get(name)
            operators = {one.operator for one in requirement.specifier}
            if part == "test" and (requirement.url or operators != {"=="}):
                wrong.append(f"pyproject.toml: {written}: pin it as name==version")
            elif part != "test" and (requirement.url or not _is_range(operators)):
                wrong.append(f"pyproject.toml: {written}: give it a range, as name>=version")
            elif version is None or not requirement.specifier.contains(version, prereleases=True):
                wrong.append(f"pyproject.toml: {written}: the lock has {version}; run: make lock")
    if wrong:
        raise AuditError("\n".join(wrong))


def _is_range(operators: set[str]) -> bool:
    return ">=" in operators and not operators & {"==", "==="}


def licences(name: str, extras: Iterable[str] = ()) -> dict[str, str]:
    """Return the licence of each installed package that ``name`` runs with; ours are left out."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra) for extra in ("", *extras)]
    while waiting:
        package, extra = waiting.pop()
        if (canonical(package), extra) in seen:
            continue
        seen.add((canonical(package), extra))
        distribution = metadata.distribution(package)
        if canonical(package) not in OURS:
            found[canonical(package)] = licence_of(cast(Message, distribution.metadata))
        for written in distribution.requires or ():
            needed = Requirement(written)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed.name, one) for one in ("", *needed.extras)]
    return found


def licence_of(described: Message) -> str:
    """Return what a package's metadata calls its licence; "" when it says nothing usable."""
    written = described.get("License-Expression") or described.get("License") or ""
    if written and len(written) <= 100 and "\n" not in written:
        return str(written)
    classifiers = [one for one in described.get_all("Classifier") or () if "License ::" in one]
    return " OR ".join(one.rpartition(" :: ")[2] for one in classifiers)


def is_permitted(licence: str) -> bool:
    """Tell whether all that an expression such as ``MIT OR Apache-2.0`` asks for is permitted."""
    parts = licence.replace("(MPL 2.0)", "[]").replace("(ISCL)", "{}")
    flat = (
        parts.replace("(", "").replace(")", "").replace("[]", "(MPL 2.0)").replace("{}", "(ISCL)")
    )
    return all(
        any(one.strip() in PERMITTED for one in part.split(" OR ")) for part in flat.split(" AND ")
    )


def check_licences(found: Mapping[str, str]) -> None:
    """Raises AuditError: a licence that is not permitted, or none."""
    wrong = [
        f"{name}: licence {licence or 'unknown'} is not permitted (tools/audit.py)"
        for name, licence in sorted(found.items())
        if not is_permitted(licence)
    ]
    if wrong:
        raise AuditError("\n".join(wrong))


def ask(versions: Mapping[str, str], service: str) -> dict[str, list[str]]:
    """Return the ids of known vulnerabilities, by package. Raises UnreachableError."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in versions.items()
    ]
    request = urllib.request.Request(
        service,
        data=json.dumps({"queries": queries}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            results = json.loads(answer.read(ANSWER_BYTES_MAX))["results"]
        if len(results) != len(queries):
            raise UnreachableError(f"{len(results)} answers to {len(queries)} questions")
        ids = [[str(one["id"]) for one in result.get("vulns") or ()] for result in results]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        text = " ".join(str(getattr(error, "reason", error)).split())
        raise UnreachableError(text or type(error).__name__) from error
    return {name: found for name, found in zip(versions, ids, strict=True) if found}


def known(versions: Mapping[str, str], folder: Path, service: str, now_s: float) -> Answer:
    """Return the answer of today, else of the service, else the last one there is."""
    of = hashlib.sha256(json.dumps([service, *sorted(versions.items())]).encode()).hexdigest()
    file, failed = folder / f"{of[:16]}.json", folder / "unreachable"
    today = datetime.datetime.fromtimestamp(now_s, datetime.UTC).date().isoformat()
    try:
        last = json.loads(file.read_text())
    except (OSError, ValueError):
        last = None
    if last and last["day"] == today:
        return Answer(last["findings"], f"none known to the advisory service on {today}")
    try:
        if failed.exists() and 0 <= now_s - failed.stat().st_mtime < ASK_AGAIN_S:
            raise UnreachableError(failed.read_text())
        findings = ask(versions, service)
    except UnreachableError as error:
        if not str(error).endswith("(tried within the last hour)"):
            _write(failed, f"{error} (tried within the last hour)", now_s)
        since = f"the answer of {last['day']} counts" if last else "not checked for known ones"
        return Answer(
            last["findings"] if last else {},
            f"the advisory service cannot be reached, {since}: {error}",
        )
    _write(file, json.dumps({"day": today, "findings": findings}), now_s)
    return Answer(findings, f"none known to the advisory service on {today}")


def _write(file: Path, text: str, now_s: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (now_s, now_s))


def check_findings(findings: Mapping[str, list[str]], versions: Mapping[str, str]) -> None:
    """Raises AuditError: a vulnerability is known that nobody has accepted."""
    wrong = [
        f"{name} {versions[name]}: {', '.join(left)}; take a version without it, or say in "
        "tools/audit.py why it does not concern us"
        for name, ids in sorted(findings.items())
        if (left := [one for one in ids if one not in ACCEPTED])
    ]
    if wrong:
        raise AuditError("\n".join(wrong))


def main() -> int:
    """Audit; print one line, or what is wrong."""
    parser = argparse.ArgumentParser(description="Audit what quorate depends on.")
    parser.add_argument("--list", action="store_true", help="list packages and licences")
    options = parser.parse_args()
    try:
        versions = locked((ROOT / "requirements.lock").read_text())
        projects = [tomllib.loads(file.read_text()) for file in project_files()]
        for project in projects:
            check_requirements(project, versions)
        found = licences(OURS[0], EXTRAS)
        if options.list:
            for name, licence in sorted(found.items()):
                print(f"{name}=={versions.get(name, '?')}  {licence}")
        check_licences(found)
        unlocked = sorted(set(found) - set(versions))
        if unlocked:
            raise AuditError(f"installed and not in requirements.lock: {', '.join(unlocked)}")
        answer = known(versions, cache_root() / "audit", SERVICE, time.time())
        check_findings(answer.findings, versions)
    except AuditError as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"audit: {len(versions)} packages locked with hashes, {len(found)} at run time with "
        f"permitted licences; vulnerabilities: {answer.said}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
