"""Goal: one style for all commands: help that suffices, errors of one line, honest exit codes.

Method: the command line in this process; processes where signals, pipes and start-up matter.
"""

import json
import re
import signal
import subprocess
import sys
import tomllib

import pytest
import typer
import yaml

from quorate import __version__
from quorate.cli import main
from quorate.cli.show.progress import PATIENCE_S, Progress
from tests.paths import ROOT
from tests.unit.cli.api_server import ApiServer, kubeconfig, serving
from tests.unit.shell.scripted_server import ManualClock
from tools.testing import HANGS_S, call

COMMANDS = (
    "up",
    "down",
    "run",
    "why",
    "gangs",
    "nodes",
    "lint",
    "record",
    "replay",
    "manifests",
    "completion",
    "version",
)
OF_CLUSTERS = ("run", "why", "gangs", "nodes")


@pytest.fixture
def quorate(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")

    def run(*args):
        code = call(*args)
        return code, *capsys.readouterr()

    return run


def process(*args, **more):
    line = [sys.executable, "-m", "quorate.cli", *args]
    return subprocess.run(
        line, capture_output=True, text=True, timeout=HANGS_S, check=False, **more
    )


# Help


def test_help_lists_every_command_and_the_exit_codes(quorate):
    code, out, err = quorate("--help")
    assert (code, err) == (0, "")
    for name in COMMANDS:
        assert re.search(rf"\b{name} +[A-Z]", out), name
    assert "Exit codes: 0 all is well; 1 " in out
    assert quorate()[1].split() == out.split()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_examples_and_its_own_exit_codes(quorate, name):
    """Each page had those of all: ``version --help`` told what it means that lint found errors."""
    code, out, _ = quorate(name, "--help")
    assert code == 0
    codes = set(re.findall(r"\b([0-9]+) [a-z]", out.partition("Exit codes: ")[2]))
    has_no = name in ("run", "why", "gangs", "lint", "replay")
    waits = name in ("down", "why", "gangs", "nodes", "lint", "record", "replay")
    assert codes == {"0", "2"} | ({"1"} if has_no else set()) | ({"130"} if waits else set())
    assert re.search(rf"Examples:\s+.*quorate {name}", out)
    assert quorate(name, "-h")[1] == out


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_says_what_values_are_called_and_not_of_which_type_they_are(quorate, name):
    out = quorate(*filter(None, [name]), "--help")[1]
    assert re.findall(r"<[^|>]*>", out) == []
    command = typer.main.get_command(main.app)
    options = (command.commands[name] if name else command).params
    for one in options:
        takes = one.param_type_name == "option" and not one.is_flag
        assert not takes or one.metavar or "|" in one.display_type_rich(ctx=None), one.name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_options_everywhere(quorate, name):
    out = quorate(name, "--help")[1]
    assert ("--kubeconfig" in out, "--context" in out) == ((name in OF_CLUSTERS),) * 2
    if name not in ("up", "down", "run", "record", "replay", "completion"):
        forms = "yaml|json" if name == "manifests" else "table|json|yaml|wide"
        forms += "|name" if name == "gangs" else ""
        assert re.search(rf"--output +-o +<{re.escape(forms)}>", out)
    if name in ("why", "gangs", "lint", "manifests"):
        assert re.search(r"--namespace +-n ", out)
    if name in ("why", "gangs"):
        assert re.search(r"--all-namespaces +-A ", out)


# Errors


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["gagns"], "No such command 'gagns'. Did you mean 'gangs'? See: quorate --help"),
        (["why"], "Missing argument 'NAME'. See: quorate why --help"),
        (["lint"], "Missing argument 'FILE'. See: quorate lint --help"),
        (["gangs", "--contex"], "--contex (Possible options: --config, --context) See:"),
        (["gangs", "-o", "text"], "is not one of 'table', 'json', 'yaml', 'wide', 'name'. See:"),
        (["manifests", "--replicas", "two"], "See: quorate manifests --help"),
        (["manifests", "--replicas", "0"], "--replicas 0 is out of range. Use 1 to 10"),
    ],
)
def test_a_bad_call_is_one_line_and_exit_code_2(quorate, args, said):
    code, out, err = quorate(*args)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert said in err


def test_run_says_in_one_line_what_is_missing():
    done = process("run", "--kubeconfig", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: nothing: no such kubeconfig; give its path with --kubeconfig or $KUBECONFIG\n"
    )


# Output


def test_version_in_every_form(quorate):
    assert quorate("version") == (0, f"{__version__}\n", "")
    assert quorate("version", "-o", "wide") == quorate("version")
    assert json.loads(quorate("version", "-o", "json")[1]) == {"version": __version__}
    assert yaml.safe_load(quorate("version", "-o", "yaml")[1]) == {"version": __version__}


def test_manifests_as_json_are_one_list_of_the_same_objects(quorate):
    as_yaml = quorate("manifests", "-n", "batch")[1]
    as_json = json.loads(quorate("manifests", "-n", "batch", "-o", "json")[1])
    assert as_json["kind"] == "List"
    assert as_json["items"] == [one for one in yaml.safe_load_all(as_yaml) if one]


# Processes


def test_what_is_heavy_is_imported_only_where_it_is_needed():
    code = (
        "import sys, quorate.cli.main as m; m.call(['version']); m.call(['--help']);"
        "print([n for n in ('numpy', 'aiohttp', 'yaml') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    code = code.replace("['version']", "['lint', 'examples']").replace("'numpy', ", "")
    code = code.replace(", 'yaml'", "")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_ctrl_c_ends_quietly_with_130(tmp_path):
    server = ApiServer()
    with serving(server):
        server.answer_never = True
        config = kubeconfig(tmp_path, server.url)
        line = [sys.executable, "-m", "quorate.cli", "gangs", "--kubeconfig", config]
        with subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            assert server.asked.wait(HANGS_S)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=HANGS_S)
    assert (running.returncode, out, err) == (130, "", "")


def test_a_reader_who_has_seen_enough_is_no_error():
    line = f"{sys.executable} -m quorate.cli manifests --image=q:1 | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def test_progress_comes_after_two_seconds_and_on_terminals_only(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")
    clock = ManualClock()
    with Progress(clock) as progress:
        progress.say("one")
        clock.time_s += PATIENCE_S
        assert "one" not in capsys.readouterr().err
        progress.say("reading 5,000 nodes")
    assert "reading 5,000 nodes" in capsys.readouterr().err
    monkeypatch.delenv("FORCE_COLOR")
    clock = ManualClock()
    with Progress(clock) as progress:
        clock.time_s += PATIENCE_S
        progress.say("reading 5,000 nodes")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("has_extra", [True, False])
def test_as_a_plugin_of_kubectl_it_goes_by_that_name(tmp_path, has_extra):
    """``kubectl quorate`` was no command."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-quorate"] == scripts["quorate"] == "quorate.cli.entry:main"
    program = tmp_path / "kubectl-quorate"
    program.write_text(
        f"import sys; sys.modules.update({{}} if {has_extra} else {{'typer': None}})\n"
        "from quorate.cli.entry import main; main()\n"
    )
    line = [sys.executable, program, "run"]
    told = subprocess.run([*line, "--help"], capture_output=True, text=True, check=True).stdout
    assert "sage: kubectl quorate run " in told
    assert not has_extra or re.search(r"Examples:\s+kubectl quorate run\b", told)
    done = subprocess.run([*line, "--x"], capture_output=True, text=True, check=False)
    assert "See: kubectl quorate " in done.stderr


def test_the_module_and_the_script_are_the_same():
    assert process("version").stdout == f"{__version__}\n"
    assert main.app.info.name == "quorate"
