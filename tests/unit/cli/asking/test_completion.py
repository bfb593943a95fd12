"""Goal: Tab offers commands, gangs, namespaces and presets, never files in their place.

Method: the scripts in a real bash; what ``quorate`` offers it, in processes, against a server that
answers by path.
"""

import os
import subprocess
import sys

import pytest

from quorate.cli.asking import offers
from quorate.cli.asking.selection import SORT_PATHS
from quorate.cli.show.survey_result import STATES
from tests.unit.cli.api_server import kubeconfig, serving, small_cluster
from tools.testing import HANGS_S, call

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def cluster():
    with serving(small_cluster()) as server:
        names = ("team", "other", "kube-system")
        items = [{"metadata": {"name": name}} for name in names]
        server.answers[NAMESPACES] = 200, {"metadata": {"resourceVersion": "1"}, "items": items}
        groups = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team/podgroups"
        named = [{"metadata": {"name": name}} for name in ("train", "done")]
        server.answers[groups] = 200, {"metadata": {}, "items": named}
        pods = [{"metadata": {"name": "train-0"}}]
        server.answers["/api/v1/namespaces/team/pods"] = 200, {"metadata": {}, "items": pods}
        yield server


@pytest.fixture
def offered(cluster, tmp_path):
    """Return what is offered after a line, of which the last word is being typed."""
    config = kubeconfig(tmp_path, cluster.url, namespace="team")

    def run(typed, *, url=None):
        env = {
            **os.environ,
            "KUBECONFIG": kubeconfig(tmp_path, url) if url else config,
            "_QUORATE_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split(" ")) - 1),
        }
        line = [sys.executable, "-m", "quorate.cli"]
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=HANGS_S, env=env, check=True
        )
        assert done.stderr == ""
        return set(done.stdout.split())

    return run


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("quorate ga", {"gangs"}),
        ("quorate why --names", {"--namespace"}),
        ("quorate gangs -o ", {"table", "json", "yaml", "wide", "name"}),
        ("quorate why ", {"train", "done"}),
        ("quorate gangs tr", {"train"}),
        ("quorate why pod/", {"pod/train-0"}),
        ("quorate gangs -n ", {"team", "other", "kube-system"}),
        ("quorate why --namespace kube", {"kube-system"}),
        ("quorate up --shape core", {"coreweave-h100", "coreweave-gb200"}),
        ("quorate lint a.yaml --shape sma", {"small"}),
        ("quorate gangs --state f", {"finished", "failed"}),
        ("quorate gangs --sort-by pr", {"priority"}),
        ("quorate completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_what_is_offered(offered, typed, words):
    """``quorate why <Tab>``, -n and --shape offered files."""
    assert offered(typed) == words


def test_a_cluster_that_cannot_be_asked_offers_nothing_without_a_word(offered):
    assert offered("quorate why ", url="http://127.0.0.1:1") == set()


def test_bash_takes_the_script_and_offers_files_only_where_a_file_is_meant(cluster, tmp_path):
    """The shell itself offered files where a gang is meant."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "quorate"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m quorate.cli "$@"\n')
    program.chmod(0o755)
    script = """
    source <(quorate completion bash)
    compopt() { echo "files"; }
    offer() { COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
              _quorate_completion quorate; echo "${COMPREPLY[*]}"; }
    offer quorate why ""
    offer quorate why --kubeconfig ""
    offer quorate lint --stri
    complete -p quorate
    """
    env = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "KUBECONFIG": kubeconfig(tmp_path, cluster.url, namespace="team"),
        "HOME": str(tmp_path),
    }
    before = set(tmp_path.iterdir())
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=env, check=True
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "done train",
        "files",
        "",
        "files",
        "--strict",
        "complete -F _quorate_completion quorate",
    ]
    assert set(tmp_path.iterdir()) == before, "no file is written unasked"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_quorate(capsys, shell):
    assert call("completion", shell) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(("# quorate completion for", "#compdef quorate"))
    assert "_QUORATE_COMPLETE=complete_bash" in out


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_no_option_writes_into_start_up_files(capsys, option):
    """--install-completion wrote into ~/.bashrc without asking."""
    assert call(option) == 2
    assert "No such option" in capsys.readouterr().err


def test_a_shell_that_has_no_script_is_one_line(capsys):
    assert call("completion", "powershell") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "'bash', 'zsh', 'fish'" in err


def test_the_words_that_are_offered_are_those_that_are_understood():
    assert list(offers.STATE_WORDS) == [state.lower() for state in STATES]
    assert list(offers.SORT_WORDS) == list(SORT_PATHS)
