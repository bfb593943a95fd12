"""Goal: ``make demo`` tells the truth, reads well anywhere, and leaves nothing behind.

Method: the demo as a process, as make starts it, on embedded clusters; pure parts by themselves.
"""

import contextlib
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.signals import ignores
from tools import objects
from tools.demo.naive import first_fit
from tools.demo.view import view
from tools.demo.world import BLUE, GANGS, PG1, RED, GangSeen, Member, Picture
from tools.testing import HANGS_S, wait_for

ROOT = Path(__file__).resolve().parents[2]
STEPS = (
    "1/4  A gang that cannot start says why",
    "✓ neither pod starts, and both say why: 2 of 4 members exist; Deployment pause makes 2",
    "$ quorate why pg1",
    "Waiting, OwnerMakesTooFew",
    "▸ like kubectl scale deployment pause --replicas=4",
    "✓ all 4 pods run",
    "2/4  Two labels make a gang, too",
    "✓ both pods run",
    "3/4  Two gangs, and room for one",
    "✓ quorate: one gang runs whole, the other waits and holds nothing",
    "✓ one pod at a time: both gangs are half started, and no GPU is free",
    "is done, and",
    "✓ one pod at a time: nothing has moved",
    "4/4  A gang that loses a pod",
    "✓ the other 3 still run, and in the place of the lost pod runs pause-",
    "Every step did what it said.",
)
COLOUR = re.compile(r"\x1b\[[0-9;]*\b[34][0-7]\b[0-9;]*m")


@pytest.fixture
def demo(tmp_path):
    """Start the demo; at the end nothing of it may be left: no process, no file."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    started = []

    def start(*args, program=("-m", "tools.demo"), ignoring=(), **environment):
        process = subprocess.Popen(
            [*ignores(*ignoring), sys.executable, *program, *args],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder), "COLUMNS": "100", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()
    assert list(folder.iterdir()) == []
    wait_for(lambda: not processes_of(folder), "no process is left")


def processes_of(folder):
    """Map the ids of processes that have this folder in their command line to that line."""
    command = ["ps", "-ww", "-eo", "pid=,args="]  # -ww: no line is cut
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [line.split(maxsplit=1) for line in listed.splitlines() if str(folder) in line]
    return {int(pid): args for pid, args in found}


def read_until(process, text):
    read = ""
    while text not in read:
        line = process.stdout.readline()
        assert line, f"ended before it said {text!r}:\n{read}"
        read += line
    return read


def test_each_step_is_told_and_comes_true_and_keep_leaves_the_cluster_up(demo, tmp_path):
    with socket.socket() as other:  # another scheduler of this machine has the usual port
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # one really runs
            other.bind(("0.0.0.0", 10271))
            other.listen()
        process = demo("--keep", "--wait", f"{HANGS_S}", "--picture", str(tmp_path / "demo.svg"))
        said = read_until(process, "export KUBECONFIG=")
    at = -1
    for text in STEPS:
        found = said.find(text, at + 1)
        assert found > at, f"{text!r} is missing, or in another order:\n{said}"
        at = found
    assert "\x1b" not in said
    drawn, kept = (tmp_path / "demo.svg").read_text(), (ROOT / "docs" / "demo.svg").read_text()
    assert drawn == kept, "run: make demo ARGS='--picture docs/demo.svg'"
    kubeconfig = said.rpartition("export KUBECONFIG=")[2].strip()
    gangs = subprocess.run(
        [sys.executable, "-m", "quorate.cli", "gangs", "--kubeconfig", kubeconfig],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )
    assert re.search(r"pg1 .*Started +4/4 +4", gangs.stdout), gangs.stderr
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANGS_S)
    assert process.returncode == 0


@pytest.mark.explore
@pytest.mark.parametrize(
    ("file", "old", "new", "step"),
    [
        ("coreweave-podgroup.yaml", "replicas: 2", "replicas: 3", "1/4"),
        ("two-gangs.yaml", "nvidia.com/gpu: 2", "nvidia.com/gpu: 1", "3/4"),
    ],
    ids=["the Deployment makes three", "both gangs have room"],
)
def test_a_step_that_does_not_come_true_is_named_and_the_exit_code_is_1(
    demo, tmp_path, file, old, new, step
):
    examples = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", examples)
    changed = (examples / file).read_text()
    assert old in changed
    (examples / file).write_text(changed.replace(old, new))
    process = demo("--examples", str(examples), "--wait", "2")
    said = process.communicate(timeout=HANGS_S)[0]
    assert process.returncode == 1, said
    last = said.strip().splitlines()[-1]
    assert last.startswith(f"✗ {step}")
    assert "not true" in last
    assert "make demo ARGS=--keep" in last  # the remedy
    assert "Every step did what it said" not in said


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.explore)],
)
def test_a_signal_ends_it_at_any_time_and_leaves_nothing(demo, number, code):
    process = demo("--pace", "0.2")
    read_until(process, "$ quorate why pg1")
    process.send_signal(number)
    said = process.communicate(timeout=HANGS_S)[0]
    assert process.returncode == code, said
    assert "Traceback" not in said


INTERRUPTED = """
import http.client, os, runpy, signal, sys

close = http.client.HTTPResponse.close

def closed_once(answer):  # by Python, which frees what was read to its end
    http.client.HTTPResponse.close = close
    os.kill(os.getpid(), signal.SIGINT)
    close(answer)

http.client.HTTPResponse.close = closed_once
sys.argv[1:] = ["--pace", "0"]
runpy.run_module("tools.demo", run_name="__main__")
"""


def test_ctrl_c_is_heard_in_the_moment_in_which_python_drops_what_a_handler_raises(demo):
    process = demo(program=["-c", INTERRUPTED])
    assert process.communicate(timeout=HANGS_S)[0].endswith("nothing is left behind.\n")
    assert process.returncode == 130


@pytest.mark.explore
def test_ctrl_c_ends_it_though_the_shell_that_started_it_ignores_ctrl_c(demo):
    """A shell without job control starts what has an ``&`` with SIGINT ignored."""
    process = demo("--pace", "0.2", ignoring=[signal.SIGINT])
    read_until(process, "$ quorate why pg1")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=HANGS_S)[0].endswith("nothing is left behind.\n")
    assert process.returncode == 130


@pytest.mark.explore
def test_it_outlives_its_terminal_under_nohup(demo):
    process = demo("--pace", "0", ignoring=[signal.SIGHUP])
    read_until(process, "$ quorate why pg1")
    process.send_signal(signal.SIGHUP)
    assert "Every step did what it said." in process.communicate(timeout=HANGS_S)[0]
    assert process.returncode == 0


@pytest.mark.explore
def test_a_cluster_that_dies_is_one_line_and_exit_code_2(demo, tmp_path):
    process = demo("--pace", "0.2")
    read_until(process, "✓ neither pod starts")
    (cluster,) = [
        pid
        for pid, args in processes_of(tmp_path).items()
        if re.search(r"/quorate/cluster\b", args)
    ]
    os.kill(cluster, signal.SIGKILL)
    said = process.communicate(timeout=HANGS_S)[0]
    assert process.returncode == 2
    assert said.strip().splitlines()[-1].startswith("✗ Error: quorate up ended")


@pytest.mark.explore
def test_on_a_terminal_the_view_is_drawn_anew_and_no_colour_is_used_against_NO_COLOR(  # noqa: N802
    tmp_path,
):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TMPDIR": str(tmp_path), "NO_COLOR": "1"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.demo", "--pace", "0"],
        cwd=ROOT,
        env=environment,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(ours, 65536):
            said += chunk
    os.close(ours)
    text = said.decode()
    assert process.wait(HANGS_S) == 0, text
    assert "What to try next:" in text
    assert "\x1b[1A" in text  # the cursor goes up to draw the view anew
    assert "\x1b[?25h" in text  # and is visible again
    assert not COLOUR.search(text)
    assert list(tmp_path.iterdir()) == []


def test_the_scheduler_of_single_pods_fills_the_first_node_that_has_room():
    nodes = [node("a", gpus=2), node("b", gpus=4)]
    on_a = pod("one", gpus=1, node="a")
    assert first_fit(pod("two", gpus=1), nodes, [on_a]) == "a"
    assert first_fit(pod("two", gpus=2), nodes, [on_a]) == "b"
    assert first_fit(pod("two", gpus=5), nodes, [on_a]) is None
    ended = pod("one", gpus=1, node="a", phase="Succeeded")
    assert first_fit(pod("two", gpus=2), nodes, [ended]) == "a"


def node(name, gpus):
    return objects.node(name, allocatable={"pods": "110", "nvidia.com/gpu": str(gpus)})


def pod(name, gpus, node="", phase="Pending"):
    requests = {"cpu": "500m", "nvidia.com/gpu": str(gpus)}
    return objects.pod(name, requests=requests, nodeName=node, status={"phase": phase})


def members(count, *, node="", gpus=0, why=""):
    phase = "Running" if node else "Pending"
    return tuple(Member(f"{node}-{i}", f"{node}-{i}", node, phase, gpus, why) for i in range(count))


def lines_of(pictures, width):
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(view(pictures))
    return captured.get().splitlines()


def test_the_view_shows_whose_each_gpu_is_and_what_waits():
    red = GangSeen(gang=RED, members=members(2, node="n1", gpus=2) + members(3, gpus=2, why="full"))
    pg1 = GangSeen(gang=PG1, members=members(4, node="n2"))
    picture = Picture(nodes={"n1": 4, "n2": 4}, gangs={"pg1": pg1, "red": red})
    text = "\n".join(lines_of([("quorate", picture)], 80))
    assert re.search(r"n1 +R R R R", text)
    assert re.search(r"n2 +· · · · +pppp", text)
    assert re.search(r"waiting +RRR\b", text)
    assert re.search(r"red +2 of 8 +half started: full", text)
    assert re.search(r"pg1 +4 of 4 +runs", text)
    coloured = Console(width=80, force_terminal=True, color_system="standard", no_color=False)
    with coloured.capture() as captured:
        coloured.print(view([("quorate", picture)]))
    assert COLOUR.search(captured.get())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("clusters", [1, 2])
def test_the_view_fits_the_terminal_at_its_fullest(width, clusters):
    why = "0/4 nodes are available: 4 Insufficient gpu. 8 members must start together and 0 fit"
    gangs = {gang.name: GangSeen(gang=gang, members=members(8, gpus=2, why=why)) for gang in GANGS}
    gangs["blue"] = GangSeen(gang=BLUE, members=members(8, node="s4a55e8", gpus=2))
    picture = Picture(nodes={f"s4a55e{i}": 4 for i in range(4)} | {"s4a55e8": 16}, gangs=gangs)
    lines = lines_of([("one pod at a time", picture)] * clusters, width)
    assert max(len(line) for line in lines) <= width
