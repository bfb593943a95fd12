"""Goal: what is in the image is enough to run quorate, and nothing of the machine is needed.

Method: the unpacked root file system becomes the root (chroot) in a mount namespace of its own,
read-only but for /tmp, as user 65532, with /proc and without /dev. So interpreter, libraries and
modules can only be the image's. What no test here shows: that a container runtime starts it; that
needs cgroups, a network of its own and the kubelet's mounts.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from quorate.shell.recording.file_format import MAGIC
from tools.embedded import Embedded
from tools.harness.scheduler import Quorate
from tools.objects import gang_pods
from tools.testing import HANGS_S, wait_for

pytestmark = pytest.mark.timeout(900)  # of a busy machine; the first one waits for the image
PODS = "/api/v1/namespaces/default/pods"
GANG = "pod-group.scheduling.sigs.k8s.io"
ENTER = """
set -e
root=$1 shared=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,ro,bind "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
if [ -n "$shared" ]; then mkdir -p "$root$shared"; mount --bind "$shared" "$root$shared"; fi
exec chroot --userspec="$user" "$root" "$@"
"""


def inside(
    root: Path, *command: str, shared: Path | str = "", user: str = "65532:65532"
) -> list[str]:
    """Return the command that runs another one in the image; ``shared`` is a folder of both."""
    enter = ["unshare", "--mount", "sh", "-c", ENTER, "enter", str(root), str(shared), user]
    return [*enter, *command]


@pytest.fixture
def run(root, image):
    environment = dict(one.split("=", 1) for one in image.config["config"]["Env"])

    def call(*command, user="65532:65532"):
        done = subprocess.run(
            inside(root, *command, user=user),
            env={**os.environ, **environment, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return call


def test_the_entry_point_runs(run, image):
    (entry,) = image.config["config"]["Entrypoint"]
    version = image.config["config"]["Labels"]["org.opencontainers.image.version"]
    assert run(entry, "version") == (0, f"{version}\n", "")


def test_it_runs_as_a_user_that_it_does_not_know(run):
    """OpenShift gives each namespace users of its own, in the group 0."""
    version = run("/usr/local/bin/quorate", "version")
    assert run("/usr/local/bin/quorate", "version", user="1000680000:0") == version
    code, _, errors = run("/usr/local/bin/quorate", "run", user="1000680000:0")
    assert (code, errors.count("\n")) == (2, 1), errors


def test_it_has_the_extra_for_devices_and_hence_the_whole_command_line(run):
    code, said, _ = run("/usr/local/bin/quorate", "--help")
    assert code == 0
    assert "manifests" in said
    assert run("/usr/bin/python3", "-c", "import cel")[0] == 0


def test_each_module_of_the_standard_library_that_is_there_finds_its_libraries(run):
    code, said, errors = run(
        "/usr/bin/python3",
        "-c",
        "import importlib, os, sys\n"
        "folder = next(one for one in sys.path if one.endswith('lib-dynload'))\n"
        "names = [name.partition('.')[0] for name in os.listdir(folder)]\n"
        "print(len([importlib.import_module(name) for name in names]))",
    )
    assert (code, errors) == (0, "")
    assert int(said) > 20


def test_nothing_is_compiled_at_the_start_and_nothing_can_be_written(run):
    code, said, _ = run(
        "/usr/bin/python3",
        "-c",
        "import sys, quorate.cli.main\n"
        "of = [one.__spec__ for one in list(sys.modules.values()) if getattr(one, '__spec__', 0)]\n"
        "files = [one for one in of if one.origin and one.origin.endswith('.py')]\n"
        "import os\n"
        "print([one.origin for one in files if not os.path.exists(one.cached)])\n"
        "try: open('/usr/new', 'w')\n"
        "except OSError as error: print(error.strerror)\n"
        "print(os.getuid(), os.getgid())",
    )
    assert code == 0
    assert said.splitlines() == ["[]", "Read-only file system", "65532 65532"]


def test_it_trusts_public_authorities(run):
    program = "import ssl; print(len(ssl.create_default_context().get_ca_certs()))"
    assert int(run("/usr/bin/python3", "-c", program)[1]) > 100


def recording_of(pid: int) -> bytes:
    """Do what ``kubectl exec`` does with the command of docs/users/record.md."""
    command = ["nsenter", "--target", str(pid), "--mount", "--root", "--wd"]
    command += ["--setuid", "65532", "--setgid", "65532"]
    command += ["/usr/local/bin/quorate", "record", str(pid), "--output", "-"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_schedules_a_gang_hands_out_a_recording_and_stops_at_sigterm(root, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)

    class Contained(Quorate):
        command_line = staticmethod(
            lambda *args: inside(root, "/usr/local/bin/quorate", *args, shared=shared)
        )

    with Embedded.start(tmp_path / "cluster", nodes=3, durable=False) as cluster:
        kubeconfig = shared / "kubeconfig"
        shutil.copy(cluster.kubeconfig, kubeconfig)
        os.chown(kubeconfig, 65532, 65532)
        quorate = Contained(
            cluster, shared, {"leaderElection": {"enabled": False}}, kubeconfig=kubeconfig
        ).start()
        labels = {f"{GANG}/name": "train", f"{GANG}/min-available": "4"}
        for pod in gang_pods("train", 4, labels=labels):
            cluster.api("POST", PODS, pod)
        wait_for(
            lambda: all(one["spec"].get("nodeName") for one in cluster.api("GET", PODS)["items"]),
            "the gang has its nodes",
        )
        assert recording_of(quorate.process.pid).startswith(MAGIC)
        quorate.process.send_signal(signal.SIGTERM)
        assert quorate.process.wait(HANGS_S) == 0
        assert not quorate.complaints()
