"""Goal: without the extra ``cli`` there is the same ``quorate run``; what is missing is said."""

import json
import re
from typing import get_args

import pytest
import typer

from quorate import __version__
from quorate.cli import main, options, plain
from quorate.cli.plain_options import COMMANDS, OTHERS

TYPER = typer.main.get_command(main.app).commands


@pytest.fixture
def quorate(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")

    def run(*args):
        return plain.call(args), *capsys.readouterr()

    return run


def test_every_command_is_there_or_named_with_the_extras_it_needs():
    assert set(COMMANDS) | set(OTHERS) == set(TYPER)
    assert not set(COMMANDS) & set(OTHERS)


@pytest.mark.parametrize("name", COMMANDS)
def test_both_command_lines_have_the_same_options(name):
    whole = TYPER[name]
    assert whole.help == COMMANDS[name].help
    theirs = {tuple(one.opts): one for one in whole.params}
    for option in COMMANDS[name].options:
        other = theirs.pop(option.names)
        assert other.help == option.help
        assert other.default == option.default
        assert option.choices in ((), get_args(options.Form))
    assert not [names for names in theirs if names != ("--help",)]


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_has_every_command_or_option_and_says_what_is_missing(quorate, name):
    code, out, err = quorate(*filter(None, [name]), "--help")
    assert (code, err) == (0, "")
    if name:
        assert COMMANDS[name].help in out
        for option in COMMANDS[name].options:
            assert option.help in out
            assert option.metavar in out
    else:
        assert quorate() == (0, out, "")
        for command in COMMANDS:
            assert re.search(rf"^ +{command}\s+[A-Z]", out, re.MULTILINE)
        assert "pip install 'quorate-scheduler[cli]'" in out
        assert all(command in out for command in OTHERS)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["why", "train"], "quorate why is not installed: pip install 'quorate-scheduler[cli]'"),
        (["up"], "quorate up is not installed: pip install 'quorate-scheduler[cli,embedded]'"),
        (["gagns"], "See: quorate --help"),
        (["run", "--contex", "x"], "--contex"),
        (["run", "--config"], "See: quorate run --help"),
        (["record", "two"], "See: quorate record --help"),
        (["version", "-o", "text"], "text"),
        (["run", "--config", "nothing"], "nothing"),
        (["cks-nodes"], "--rules is needed: a file of kind WorkloadRules"),
        (["cks-nodes", "--rules", "nothing"], "nothing: the configuration file cannot be read"),
        (["cks-nodes", "--rules", "f", "--health-port", "70000"], "--health-port 70000 is no port"),
        (["cks-nodes", "--rules", "f", "--namespace", "A b"], "--namespace 'A b' is no name"),
    ],
)
def test_a_bad_call_is_one_line_and_exit_code_2(quorate, args, said):
    code, out, err = quorate(*args)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert said in err


def test_version_in_every_form(quorate):
    assert quorate("version") == (0, f"{__version__}\n", "")
    assert json.loads(quorate("version", "-o", "json")[1]) == {"version": __version__}
