"""The image's lowest layer: Python and the libraries that it needs, from Debian's packages.

In: apt, which checks Debian's signatures. Out: a tree. No shell, no package manager, no other
program. What each package is, and in which version, stays there for scanners
(``var/lib/dpkg/status.d``), and so do the licences.
"""

import platform
import re
import subprocess
import tarfile
import time
from io import BytesIO
from pathlib import Path

from tools.controlplane.process import lock
from tools.controlplane.versions import cache_root
from tools.image.tree import Entry, Tree

RELEASE = "bookworm"
PYTHON = (3, 11)
# Debian's, with their security updates; sizes are those of the packages.
PACKAGES = (
    "python3.11-minimal",  # 2.1 MB: the interpreter
    "libpython3.11-minimal",  # 0.8 MB: the standard library's heart
    "libpython3.11-stdlib",  # 1.8 MB: the rest of it
    "libc6",  # 2.8 MB
    "libgcc-s1",  # 0.05 MB: numpy
    "libstdc++6",  # 0.6 MB: numpy
    "gcc-12-base",  # 0.02 MB: the licence of these two
    "base-files",  # 0.02 MB: os-release, by which scanners know what this is, and texts of licences
    "libssl3",  # 2.0 MB: TLS
    "zlib1g",  # 0.1 MB
    "libexpat1",  # 0.1 MB: the interpreter itself
    "libffi8",  # 0.02 MB: ctypes, which numpy imports
    "libbz2-1.0",  # 0.05 MB: bz2, which shutil and zipfile import
    "liblzma5",  # 0.05 MB: lzma, likewise
    "ca-certificates",  # 0.2 MB: for kubeconfigs that trust public authorities
)
LISTS_AGE_S_MAX = 24 * 3600

_KEPT = re.compile(
    r"(usr/)?(bin|lib|lib64)/|usr/share/doc/[^/]+(/copyright)?$|usr/share/ca-certificates/"
    r"|usr/share/common-licenses/|etc/os-release$"
)
# They need libraries that are not here; quorate uses none of them.
_LEFT_OUT = re.compile(
    r"lib-dynload/(_curses|_curses_panel|readline|_dbm|_gdbm|nis|_crypt|_sqlite3|_uuid)\."
    r"|/(idlelib|lib2to3|turtledemo|tkinter|pydoc_data|ensurepip|gconv)/"
    r"|^usr/lib/locale/|^usr/lib/binfmt"
)
# Debian's folders below / are links since 2016; packages of this release still use both names.
_MERGED = re.compile(r"(bin|sbin|lib|lib32|lib64|libx32)(?=/)")
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:::\nquorate:x:65532:65532::/tmp:\n",
    "etc/group": "root:x:0:\nquorate:x:65532:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


class DebianError(RuntimeError):
    """The packages cannot be fetched on this machine; the text says what it lacks."""


def base() -> Tree:
    """Return the layer. Raises DebianError."""
    tree: Tree = {name: Entry(0o644, text.encode()) for name, text in _ACCOUNTS.items()}
    for name in ("bin", "lib", "lib64", "sbin"):
        tree[name] = Entry(0o777, target=f"usr/{name}")
        tree[f"usr/{name}"] = Entry(0o755)
    tree |= {"tmp": Entry(0o1777), "usr/bin/python3": Entry(0o777, target="python3.11")}
    tree |= {name: Entry(0o755) for name in ("dev", "proc", "run", "sys")}
    for package in _downloaded():
        tree |= _contents(package)
    bundle = [
        entry.data or b""
        for name, entry in sorted(tree.items())
        if name.startswith("usr/share/ca-certificates/") and name.endswith(".crt")
    ]
    tree["etc/ssl/certs/ca-certificates.crt"] = Entry(0o644, b"".join(bundle))
    tree["usr/lib/ssl/cert.pem"] = Entry(0o777, target="/etc/ssl/certs/ca-certificates.crt")
    return tree


def _downloaded() -> list[Path]:
    """Fetch the packages, or find them in the cache; apt has checked them."""
    release = platform.freedesktop_os_release()
    if release.get("VERSION_CODENAME") != RELEASE:
        raise DebianError(
            f"the image is made of packages of Debian {RELEASE}, by apt; this is"
            f" {release.get('PRETTY_NAME', 'another')}. Build it there, or use the Dockerfile."
        )
    home = cache_root() / "image" / RELEASE
    with lock(home, print):
        try:
            return _fetched(home)
        except subprocess.CalledProcessError:
            # A package has been superseded since the lists were fetched.
            (home / "lists" / "fetched").unlink(missing_ok=True)
            return _fetched(home)


def _fetched(home: Path) -> list[Path]:
    for name in ("lists/partial", "archives/partial", "packages"):
        (home / name).mkdir(parents=True, exist_ok=True)
    apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={home}/lists"]
    apt += ["-o", f"Dir::Cache={home}", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"]
    fresh = home / "lists" / "fetched"
    if not fresh.exists() or time.time() - fresh.stat().st_mtime > LISTS_AGE_S_MAX:
        _run([*apt, "update"], home)
        fresh.touch()
    wanted = _run([*apt, "--print-uris", "download", *PACKAGES], home).splitlines()
    names = [line.split()[1] for line in wanted if line.startswith("'")]
    if len(names) != len(PACKAGES):
        raise DebianError(f"apt knows {len(names)} of {len(PACKAGES)} packages: {names}")
    if not all((home / "packages" / name).is_file() for name in names):
        _run([*apt, "download", *PACKAGES], home / "packages")
    return [home / "packages" / name for name in sorted(names)]


def _run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout


def _contents(package: Path) -> Tree:
    found: Tree = {}
    name = package.name.partition("_")[0]
    control = _run(["dpkg-deb", "--field", str(package)], package.parent)
    found[f"var/lib/dpkg/status.d/{name}"] = Entry(0o644, control.encode())
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as tar:
        for member in tar:
            path = member.name.removeprefix("./")
            if not _KEPT.match(path) or _LEFT_OUT.search(path):
                continue
            path = _MERGED.sub(r"usr/\1", path, count=1) if _MERGED.match(path) else path
            if member.issym():
                found[path] = Entry(0o777, target=_MERGED.sub(r"usr/\1", member.linkname))
            elif member.isfile():
                read = tar.extractfile(member)
                assert read is not None
                found[path] = Entry(member.mode & 0o755, read.read())
    return found
