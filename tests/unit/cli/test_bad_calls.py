"""Goal: each wrong flag, file, name and address is one line that says what to do, and exit code 2.

Method: the command line in this process, or in its own; no cluster is there, and none is started.
"""

import socket
import subprocess
import sys

import pytest

from tests.unit.cli.api_server import kubeconfig
from tools.testing import HANGS_S, call

ASKING = (["gangs"], ["why", "x"], ["nodes"])
FILES = {
    "broken.yaml": b"a: [",
    "binary": b"\xff\xfe\x00\x01",
    "text.yaml": b"just text",
    "empty": b"",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    return tmp_path


def refused(capsys, *args):
    if args[0] == "up":  # it handles signals, which only a main thread may
        line = [sys.executable, "-m", "quorate.cli", *args]
        done = subprocess.run(line, capture_output=True, text=True, timeout=HANGS_S, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code = call(*args)
        out, err = capsys.readouterr()
    assert code == 2, args
    summary = "0 errors, 0 warnings in 0 objects of 0 files\n"  # what lint found before, and after
    assert out in (("", summary) if args[0] == "lint" else ("",)), args
    assert err.count("\n") == 1, args
    assert err.startswith("Error: "), args
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("words", ASKING, ids=lambda words: words[0])
@pytest.mark.parametrize("file", [*FILES, "folder", "missing"])
@pytest.mark.parametrize("option", ["--kubeconfig", "--config"])
def test_a_wrong_file(capsys, files, words, option, file):
    assert file in refused(capsys, *words, option, file)


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: [", "\x00", "a: &a [*a]"])
def test_a_file_that_is_no_configuration_stops_the_start(capsys, files, text):
    (files / "quorate.yaml").write_text(text)
    assert "quorate.yaml" in refused(capsys, "run", "--config", "quorate.yaml")


def test_a_bad_configuration_stops_the_start_with_file_line_field_and_remedy(capsys, files):
    (files / "bad.yaml").write_text(
        "apiVersion: quorate.dev/v1alpha1\n"
        "kind: SchedulerConfiguration\n"
        "schedulerName: [quorate]\n"
        "backoffSeconds: soon\n"
        "leaderElection:\n"
        "  leaseDurationSeconds: 5\n"
        "  renewDeadlineSeconds: 10\n"
    )
    assert call("run", "--config", "bad.yaml") == 2
    out, err = capsys.readouterr()
    assert not out
    assert "Traceback" not in err
    for expected in (
        "bad.yaml:3",
        "schedulerNames",
        "bad.yaml:4",
        "backoffSeconds",
        "leaderElection.renewDeadlineSeconds",
    ):
        assert expected in err


@pytest.mark.parametrize("words", ASKING, ids=lambda words: words[0])
def test_a_context_that_is_not_there(capsys, files, words):
    config = kubeconfig(files, "http://127.0.0.1:1")
    said = refused(capsys, *words, "--kubeconfig", config, "--context", "nope")
    assert "no context is named 'nope'; choose one of main with --context" in said


@pytest.mark.parametrize("words", ASKING, ids=lambda words: words[0])
def test_an_address_at_which_nobody_listens(capsys, files, words):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = kubeconfig(files, f"https://127.0.0.1:{taken.getsockname()[1]}")
        said = refused(capsys, *words, "--kubeconfig", config)
    assert "connection refused" in said
    assert "Check --kubeconfig and --context." in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["why", "a/b/c"], "is no name: write NAME, NAMESPACE/NAME or KIND/NAME"),
        (["why", "job/"], "is no name"),
        (["gangs", ""], "is no name"),
        (["gangs", "-n", "Bad_Name"], "'Bad_Name' is no name of a namespace: write lower-case"),
        (["why", "x", "-n", ""], "is no name of a namespace"),
        (["gangs", "--state", ""], "choose among waiting, starting, started, finished, failed"),
        (["nodes", "-l", "="], "is no label selector: write key=value"),
        (["nodes", "n1"], "unexpected extra argument(s) (n1)"),
        (["nodes", "--request-timeout", "-1s"], "is no time: write 30s, 2m, 1h, or 0 for ever"),
        (["gangs", "--request-timeout", ""], "is no time"),
        (["gangs", "--request-timeout", "5 weeks"], "is no time"),
        (["up", "--shape", "coreweave"], "The presets are "),
        (["up", "--nodes", "-1"], "See: quorate up --help"),
        (["up", "--gpu-nodes", "0"], "See: quorate up --help"),
        (["up", "--gpu-nodes", "1000000"], "give a number from 1 to 100000"),
        (["up", "--gpu-nodes", "3", "--nodes", "2"], "--nodes counts all nodes"),
        (["up", "--gpu-nodes", "3", "--shape", "kwok-cpu"], "no GPU nodes: use --nodes"),
        (["up", "--port", "99999"], "See: quorate up --help"),
        (["up", "--data", "empty"], "name another folder with --data"),
        (["up", "--run-time", "soon"], "is not a duration such as 30s"),
        (["up", "--config", "missing"], "Check --config"),
        (["down", "1"], "process 1 is no quorate up of yours"),
        (["down", "soon"], "See: quorate down --help"),
        (["record", "1"], "is no quorate run (or up) of yours that is ready"),
        (["replay", "missing"], "give a file of quorate record"),
        (["replay", "binary"], "is no recording of quorate's; give a file of quorate record"),
        (["replay", "folder"], "give a file of quorate record"),
        (["lint", "missing"], "give a manifest, a folder of them, or - for standard input"),
        (["lint", "binary"], "is it a manifest?"),
        (["lint", "empty", "--shape", "nope"], "The presets are "),
        (["lint", "empty", "--ignore", "nope"], "no such rule. The rules are "),
        (["manifests", "--only", "nope"], "networkpolicy with --network-policy"),
        (["completion"], "Choose from: bash, zsh, fish."),
        (["completion", "tcsh"], "is not one of 'bash', 'zsh', 'fish'"),
        (["--nope"], "No such option: --nope. See: quorate --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call(capsys, files, args, said):
    """Of bad input it is said what was typed wrongly, and what to type instead."""
    before = set(files.iterdir())
    assert said in refused(capsys, *args)
    assert set(files.iterdir()) == before, "nothing is left behind"
