"""A front door described by environment variables."""

import re

import pytest

from admitperf.core.declared import plain
from admitperf.core.errors import ConfigError
from admitperf.gateway.environment import KNOWN, Environment
from admitperf.gateway.setup import Holding


def pool(processes=1, **variables):
    """The pool that variables describe; `POLICY` stands for `ADMITPERF_POLICY`."""
    told = {f"ADMITPERF_{name}": text for name, text in variables.items()}
    return Environment(told, processes).pool()


def faults(**variables):
    """All that is wrong with them."""
    with pytest.raises(ConfigError) as caught:
        pool(**variables)
    return caught.value.faults


def test_a_policy_and_its_parameters_are_enough():
    """Values are numbers where they look like it; the rest has its defaults."""
    setup = pool(POLICY="queue_depth", PARAMS="max_waiting=8, action=reject")
    assert setup.policy == "queue_depth"
    assert setup.parameters == {"max_waiting": 8, "action": "reject"}
    assert setup.settings == {}
    assert setup.holding == Holding()
    assert setup.upstreams == ()


def test_settings_come_by_their_own_names():
    """The reserved keywords of a policy, one a variable."""
    setup = pool(
        POLICY="no_admission",
        LOG="decisions.jsonl",
        SLO="ttft_ms=1500,stall_ms=500",
        ENFORCE="0.5",
        PRESET="openai",
        ON_BLIND="reject",
        BLIND_CAP="4",
    )
    assert setup.settings == {
        "log": "decisions.jsonl",
        "slo": {"ttft_ms": 1500, "stall_ms": 500},
        "enforce": 0.5,
        "preset": "openai",
        "on_blind": "reject",
        "blind_cap": 4,
    }


def test_a_path_that_looks_like_a_number_stays_a_path():
    """What is text by its nature is not read as anything else."""
    assert pool(POLICY="no_admission", LOG="7").settings == {"log": "7"}


def test_holding_is_set_up():
    """Defer means to hold, for so many and so long."""
    setup = pool(
        POLICY="no_admission", DEFER="hold", HOLD_MOST="8", HOLD_LONGEST_S="2.5"
    )
    assert setup.holding == Holding(defer="hold", most=8, longest_s=2.5)


def test_what_bounds_a_process_is_divided():
    """Rounded up, defaults too; what bounds the engine is not."""
    capped = pool(2, POLICY="in_flight_cap", PARAMS="max_in_flight=9", BLIND_CAP="5")
    assert capped.parameters["max_in_flight"] == 5
    assert capped.settings["blind_cap"] == 3
    usual = pool(POLICY="in_flight_cap").parameters
    halved = pool(2, POLICY="in_flight_cap").parameters
    assert "max_in_flight" not in usual
    assert halved["max_in_flight"] > 0
    assert pool(2, POLICY="queue_depth", PARAMS="max_waiting=9").parameters == {
        "max_waiting": 9
    }


def test_the_operator_knows_best_how_many_there_are():
    """A number of processes that is told stands over the host's own."""
    told = {"ADMITPERF_PROCESSES": "4"}
    assert Environment(told, 2).processes == 4
    assert Environment({}, 2).processes == 2


def test_all_faults_are_said_at_once():
    """Each begins with the name of its variable."""
    said = faults(
        PARAMS="max_waiting",
        DEFER="wait",
        HOLD_MOST="0",
        INTERVAL_S="nan",
        PROCESSES="two",
        PEEK_MS="-1",
        SLO="ttft_ms=1,ttft_ms=2",
    )
    names = {fault.partition(":")[0].removeprefix("ADMITPERF_") for fault in said}
    assert names == {
        "POLICY",
        "DEFER",
        "HOLD_MOST",
        "INTERVAL_S",
        "SLO",
        "PROCESSES",
        "PEEK_MS",
    }


def test_parameters_are_checked_for_their_form():
    """No name, no value, a reserved name, or one that is given twice."""
    said = faults(
        POLICY="queue_depth", PARAMS="a=1,a=2,=3,b=,enforce=0.0", PROCESSES="two"
    )
    assert said == [
        "ADMITPERF_PROCESSES: 'two' is no whole number from 1 up",
        "ADMITPERF_PARAMS: a is given twice",
        "ADMITPERF_PARAMS: '=3' is not NAME=VALUE",
        "ADMITPERF_PARAMS: 'b=' is not NAME=VALUE",
        "ADMITPERF_PARAMS: enforce is no parameter",
    ]


def test_a_policy_that_is_not_there_is_named():
    """With those that are."""
    (said,) = faults(POLICY="queue_dept")
    assert said.startswith("ADMITPERF_POLICY: no policy 'queue_dept'")
    assert "queue_depth" in said


def test_a_slip_of_the_pen_is_told_and_a_stranger_is_not():
    """Orchestrators put in names of their own."""
    told = Environment(
        {
            "ADMITPERF_POLCY": "x",
            "ADMITPERF_PORT_80_TCP": "tcp://10.0.0.1:80",
            "ADMITPERF_SERVICE_HOST": "10.0.0.1",
            "POLICY": "x",
        }
    )
    assert told.unknown == {"ADMITPERF_POLCY": "ADMITPERF_POLICY"}


def test_an_empty_variable_is_none():
    """As a template leaves it that had nothing to put in."""
    assert "is not set" in faults(POLICY=" ")[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("8", 8), ("0.5", 0.5), ("true", True), ("None", None), ("reject", "reject")],
)
def test_plain_values(text, value):
    """A number, true, false or none, else the text itself."""
    assert plain(text) == value
    assert type(plain(text)) is type(value)


def test_every_variable_is_on_the_page(root):
    """And the page names no other."""
    text = (root / "docs" / "how-to" / "vllm.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`ADMITPERF_(\w+)`", text))
    assert named == set(KNOWN)
