"""`admitperf infra` as a person meets it; what it does is in tests/provision."""

import json
from pathlib import Path

import click
import pytest
from tests.cli.conftest import is_plain

from admitperf.cli import infra


@pytest.mark.parametrize("words", [(), ("up",), ("smoke",), ("down",)])
def test_help_is_plain_and_starts_nothing(run, words, tmp_path):
    """In 80 columns of ASCII."""
    shown = run("infra", *words, "--help")
    assert shown.exit_code == 0
    assert is_plain(shown.stdout)
    assert list(tmp_path.iterdir()) == []


def test_every_option_that_only_some_have_is_an_option(run):
    """A word that is no option would be refused to nobody."""
    with click.Context(infra.up) as context:
        names = {option.name for option in infra.up.get_params(context)}
    assert set(infra._OF) <= names


def test_down_of_nothing_in_json(run):
    """One strict document."""
    shown = run("infra", "down", "--json")
    assert json.loads(shown.stdout) == {
        "schema": 1, "provider": None, "ended": [], "left": [], "costs": [],
    }  # fmt: skip


def test_a_token_is_never_an_argument(run):
    """Everyone on a machine can read its command lines."""
    for command in (infra.up, infra.smoke):
        names = {name for option in command.params for name in option.opts}
        assert "--token" not in names
        assert {"--token-env", "--token-file"} <= names


@pytest.mark.parametrize("words", [("up", "--url", "h:1"), ("smoke",)])
def test_a_token_that_is_not_where_it_was_said_to_be_is_one_line(run, words):
    """Before anything is asked."""
    shown = run("infra", *words, "--token-env", "NO_SUCH")
    assert shown.exit_code == 2
    assert shown.stderr.splitlines()[-1].startswith("Error: token: ")


@pytest.mark.parametrize("state", ["", " ", "a\nb"])
def test_a_state_file_without_a_name_is_wrong_use(run, state):
    """Refused by name."""
    shown = run("infra", "down", "--state", state)
    assert shown.exit_code == 2
    assert "--state" in shown.stderr


def test_a_folder_is_no_state_file(run, tmp_path):
    """One line, and it is left alone."""
    (tmp_path / "here").mkdir()
    for words in (("down",), ("smoke",), ("up", "--provider", "sim")):
        shown = run("infra", *words, "--state", "here")
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert shown.stderr == "Error: here: is a directory\n"


def test_what_is_not_ours_to_say_is_printable(run):
    """A state file that names odd things is refused, in ASCII."""
    shown = run("infra", "up", "--provider", "sim", "--gpu", "\N{BOMB}")
    assert shown.exit_code == 2
    assert "--gpu does not go with sim" in shown.stderr


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (".admitperf/infra.json", ""),
        ("gw.json", " --state gw.json"),
        ("my file", " --state 'my file'"),
    ],
)
def test_the_commands_it_prints_find_the_same_file(state, more):
    """They can be copied as they stand."""
    assert infra._with_state("down", Path(state)) == f"admitperf infra down{more}"
