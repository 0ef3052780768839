"""`admitperf policies`: what is installed, and what one of them does."""

import json

import pytest
from tests.cli.conftest import is_plain

from admitperf.core.declared import REQUIRED
from admitperf.policies import available

BROKEN = {
    "raises": "raise RuntimeError('a\\nbroken \\x1b[31m package')",
    "syntax": "def",
    "no_class": "Thing = 3",
    "no_policy": "class Thing: pass",
    "other_name": (
        "from admitperf import Policy\nclass Thing(Policy):\n    name = 'another'\n"
    ),
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package that offers a policy on the path; `name` is also its module."""

    def _install(name, source, offers=None):
        folder = tmp_path / f"site-{name}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"plugin_{name}.py").write_text(source, encoding="utf-8")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(
            f"[admitperf.policies]\n{offers or name} = plugin_{name}:Thing\n",
            encoding="utf-8",
        )
        monkeypatch.syspath_prepend(folder)

    return _install


def test_every_installed_policy_is_listed(run):
    """Package, rule, requirements, and the names of its parameters."""
    shown = run("policies")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert is_plain(shown.stdout)
    flat = " ".join(shown.stdout.split())
    for name, cls in available().items():
        assert f"{name} admitperf 0.1.0" in flat
        assert f"rule {cls.__doc__.splitlines()[0]}" in flat
        assert f"parameters {', '.join(cls.declared()) or 'none'}" in flat


@pytest.mark.parametrize("name", sorted(available()))
def test_a_policy_that_is_named_says_all_about_itself(run, name):
    """Each parameter with range, default, origin and whether processes share it."""
    flat = " ".join(run("policies", name).stdout.split())
    for parameter in available()[name].declared().values():
        assert f"{parameter.name} {parameter.param.doc}" in flat
        told = f"default {parameter.default}: {parameter.param.origin}"
        if parameter.default is REQUIRED:
            told = "required"
        shared = " divided among the processes of one host"
        told += shared if parameter.param.per_process else ""
        assert f"{parameter.range_text()}; {told}" in flat


def test_the_list_is_what_it_was(run, golden):
    """The whole text, to be read in a diff."""
    golden("policies.txt", run("policies").stdout)


def test_the_json_has_the_same_policies(run):
    """Defaults keep their types, so that a program can use them."""
    told = json.loads(run("policies", "--json").stdout)
    found = {one["name"]: one for one in told["policies"]}
    assert list(found) == sorted(available())
    assert told["broken"] == []
    (threshold, *_) = found["kv_threshold"]["parameters"]
    assert (threshold["name"], threshold["default"]) == ("threshold", 0.9)
    assert found["kv_threshold"]["requires"] == ["kv_pressure"]
    assert found["no_admission"]["baseline"] is True
    assert found["no_admission"]["parameters"] == []


def test_a_signal_is_required_and_a_fact_is_made_use_of(run, install):
    """A policy that is blind without a signal still decides without a fact."""
    source = (
        "from admitperf import Policy\n"
        "from admitperf.core.signals import KV_PRESSURE\n"
        "class Thing(Policy):\n"
        "    'Refuses nothing.'\n"
        "    name = 'facts'\n"
        "    requires = (KV_PRESSURE, 'tenant', 'model')\n"
    )
    install("facts", source)
    shown = run("policies", "facts").stdout
    assert "\n  requires        kv_pressure\n  makes use of    tenant, model\n" in shown
    (told,) = json.loads(run("policies", "facts", "--json").stdout)["policies"]
    assert told["requires"] == ["kv_pressure"]
    assert told["makes_use_of"] == ["tenant", "model"]
    assert "makes use of" not in run("policies", "kv_threshold").stdout


def test_one_policy_is_described_alone(run):
    """Its whole text and its taxonomy, and nothing of the others."""
    shown = run("policies", "in_flight_cap")
    assert is_plain(shown.stdout)
    assert "Up to three bounds" in shown.stdout
    assert "signal_quantity" in shown.stdout
    assert "ConfigError" not in shown.stdout
    assert "kv_threshold" not in shown.stdout


def test_a_name_nobody_offers_is_one_line_with_the_nearest(run):
    """A slip of the finger is answered with what was meant."""
    shown = run("policies", "kv_treshold")
    assert shown.exit_code == 2
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert "nearest: kv_threshold" in line


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plug_in_is_one_line_and_the_others_are_listed(run, install, kind):
    """A package that cannot be imported takes nobody else away."""
    install(kind, BROKEN[kind])
    shown = run("policies")
    assert shown.exit_code == 0
    assert all(f"{name} " in shown.stdout for name in available())
    (line,) = shown.stderr.splitlines()
    assert line.startswith(f"left out: policy '{kind}'")
    assert line.isprintable()


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plug_in_asked_for_by_name_is_an_error(run, install, kind):
    """One line and exit code 2, no traceback."""
    install(kind, BROKEN[kind])
    shown = run("policies", kind)
    assert shown.exit_code == 2
    assert len(shown.stderr.splitlines()) == 1


def test_two_packages_with_one_name_are_named_both(run, install):
    """Neither is picked by chance, and the rest is listed."""
    install("first", "", offers="twice")
    install("second", "", offers="twice")
    shown = run("policies")
    assert "first" in shown.stderr
    assert "second" in shown.stderr
    assert "kv_threshold" in shown.stdout
    told = json.loads(run("policies", "--json").stdout)
    assert len(told["broken"]) == 1


def test_a_plug_in_is_listed_like_ours(run, install):
    """With its own package, a required parameter, and a default JSON does not have."""
    source = (
        "from typing import Annotated\n"
        "from admitperf import Param, Policy\n"
        "class Thing(Policy):\n"
        "    '''Refuses \\u00e9verything\\x1b[31m.'''\n"
        "    name = 'acme'\n"
        "    needed: Annotated[int, Param('no default')]\n"
        "    odd: Annotated[float, Param('infinite')] = float('inf')\n"
    )
    install("acme", source)
    shown = run("policies", "acme")
    assert is_plain(shown.stdout)
    assert "acme 1.0" in shown.stdout
    assert "int, any; required" in shown.stdout
    (made,) = json.loads(run("policies", "acme", "--json").stdout)["policies"]
    assert [one["required"] for one in made["parameters"]] == [True, False]
    assert made["parameters"][1]["default"] == "inf"


def test_a_wrong_option_is_exit_code_2_with_usage(run):
    """As for every command."""
    shown = run("policies", "--no-such-option")
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Usage: ")


def test_it_is_plain_for_every_console_and_reader(shell):
    """ASCII, no escape bytes, and a closed pipe is no error."""
    ran = shell("admitperf policies", PYTHONIOENCODING="ascii", FORCE_COLOR="1")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"\x1b" not in ran.stdout
    ran = shell("set -o pipefail; admitperf policies | true", PYTHONUNBUFFERED="1")
    assert ran.returncode in (0, 141)
    assert ran.stderr == b""
