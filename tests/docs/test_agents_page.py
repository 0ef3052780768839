"""The page for coding agents says what the gateway and its policies do."""

import re
from inspect import getsource
from pathlib import Path

import anthropic
import openai
import pytest

from admitperf.core.reasons import DEFAULT
from admitperf.gateway.config.document import read
from admitperf.gateway.config.schema import parsed
from admitperf.gateway.facts.conventions import Conventions
from admitperf.policies import load
from admitperf.policies.parts.ledger import books, history
from admitperf.policies.session_ledger import WAIT_LEAST_S, SessionLedger
from admitperf.testing import FakeClock

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")
BLIND = {"signal_absent", "signal_stale"}
SPREAD = 1.25
IN_BODY = {
    "metadata.user_id": "body:user.session",
    "prompt_cache_key": "body:prompt_cache_key",
}


def section(number):
    """The text under the heading of that number."""
    return re.split(r"^## \d\. .+$", PAGE, flags=re.MULTILINE)[number]


def rows(text):
    """The cells of a text's table, without head and rule."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][2:]


def words(cell):
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def told_wait(reason):
    """The last cell of the row of that reason, in what an agent sees."""
    (row,) = [row for row in rows(section(4)) if reason in words(row[2])]
    return row[4]


def asks(policy, session):
    """One call, which stays open when it is let in."""
    reading = {"kv_capacity_tokens": 10_000}
    return policy(reading, session=session, input_tokens=4_000)


def test_the_example_is_a_file_the_gateway_takes():
    """With the policy of the page, and parameters that it has."""
    made = parsed(read(ROOT / "examples" / "agents.yaml", {}), "agents.yaml").edge
    (pool,) = made.pools
    assert pool.policy == "session_ledger"
    assert load(pool.policy)(**pool.parameters).mode == "protect"
    assert made.conventions["charge"] == "child"


@pytest.mark.parametrize("row", rows(section(1)), ids=lambda row: row[0])
def test_what_agents_send_is_looked_for(row):
    """Every header of the table is a place of that fact without any setting."""
    ours = Conventions()
    named = {IN_BODY.get(word, word) for word in words(row[1])}
    assert named
    assert named <= {*ours.session}
    helpers = (*ours.child, *ours.child_parent, *ours.parent_session)
    assert set(words(row[2])) <= set(helpers)
    assert {word.partition(":")[0] for word in words(row[3])} <= {*ours.session_final}


def test_an_end_is_what_the_books_take_for_one():
    """The seconds, and the reasons of answers with a tool call and without."""
    ends = section(1).split("**A task ends**")[1].split("`session_aimd`")[0]
    assert f"{books.OVER_S:g} s after an answer" in ends
    assert f"{books.LEFT_S:g} s after a call" in ends
    told = [word for word in words(ends) if word in {*books._STOPPED, *books._TOOL}]
    assert told == [*books._STOPPED, *books._TOOL]
    assert "completed" not in told


def test_each_answer_of_the_page_is_one_that_the_ledger_gives():
    """All of its reasons, each with its status and whether to come again."""
    told = {
        reason: (int(row[1]), row[3] == "true")
        for row in rows(section(4))
        for reason in words(row[2])
    }
    assert set(told) == {*SessionLedger.refuses_with, *BLIND}
    for reason, (status, again) in told.items():
        assert status == DEFAULT[reason].status
        # A quota may be tried again in general; here its wait is past what helps.
        assert again == (DEFAULT[reason].retry and reason != "session_quota")


def test_the_waits_of_the_page_are_those_that_are_sent():
    """Whole seconds, from the least to the most with its spread."""
    longest = -(-SessionLedger.declared()["longest_wait_s"].default * SPREAD // 1)
    assert WAIT_LEAST_S <= 1
    for reason in ("slots", "deadline_unmeetable", "tenant_share"):
        assert told_wait(reason).partition(",")[0] == f"1 to {longest:g} s"


def test_a_final_no_comes_with_the_wait_of_the_page():
    """For a task that would wait too long, and for one that has to leave."""
    final = {
        "deadline_unmeetable": {"patience": 0.0},
        "session_quota": {"mode": "shed", "quantum": 1, "elephant_share": 0.0}
        | {"margin": 0.0},
    }
    for reason, given in final.items():
        policy = load("session_ledger")(
            **given, reports_outcomes=True, clock=FakeClock()
        )
        asked = [asks(policy, session) for session in ("old", "new", "old")]
        (refused,) = [d for d in asked if d.reason == reason]
        headers = refused.headers()
        assert headers["x-should-retry"] == "false"
        least, most = map(int, re.findall(r"\d+", told_wait(reason)))
        assert least <= int(headers["Retry-After"]) <= most


def test_who_was_told_no_begins_to_wait_anew():
    """A first no by patience is no memory: the next try is told to wait again."""
    clock = FakeClock()
    policy = load("session_ledger")(reports_outcomes=True, clock=clock)
    assert asks(policy, "old").admitted
    told = []
    while len(told) < 10 and "deadline_unmeetable" not in told:
        told.append(asks(policy, "new").reason)
        clock.advance(5.0)
    assert told[0] == "kv_headroom"
    assert told[-1] == "deadline_unmeetable"
    assert asks(policy, "new").reason == "kv_headroom"


def test_the_priors_of_the_page_are_those_of_the_policy():
    """While nothing is learnt, and so the bound that the sample run shows."""
    kept = section(7).split("**Restart.**")[1]
    patience_s = SessionLedger.declared()["patience"].default * history.HORIZON_S
    for number in (
        f"{history.SERVICE_S:g} s",
        f"{history.GAP_S:g} s",
        f"{history.GROWTH:g} tokens",
        f"{history.HORIZON_S:g} s",
        f"over {patience_s:g} s",
    ):
        assert number in kept
    assert f"task_wait_s > {patience_s:g} " in section(6)
    assert (history.HORIZON_CALLS, history.LEARNT_AFTER) == (10, 5)


def test_every_gate_to_watch_is_one_that_the_policy_records():
    """Under the name that a log has."""
    import admitperf.policies.session_ledger as module

    found = {words(row[0])[0] for row in rows(section(6))}
    assert found == {
        "ledger_kv",
        "ledger_slots",
        "ledger_prefill",
        "task_wait_s",
        "prompt_kv",
        "session_in_flight",
        "tenant_kv",
        "tenant_backlog_tokens",
    }
    assert all(f'"{name}"' in getsource(module) for name in found)


def test_parameters_that_are_named_exist():
    """Of the ledger, in what to set first."""
    named = re.findall(r"^\d\. `(\w+)`", section(5), re.MULTILINE)
    assert named == ["lease_s", "slots", "mode", "weights", "in_flight"]
    assert set(named) <= set(SessionLedger.declared())


def test_both_clients_come_again_twice_by_default():
    """As the page says of them."""
    assert "and come again, twice unless" in section(4)
    assert openai.DEFAULT_MAX_RETRIES == anthropic.DEFAULT_MAX_RETRIES == 2


def test_a_helper_is_in_its_roots_family():
    """It begins beside it, on a full engine, and counts towards its open calls."""
    policy = load("session_ledger")(
        in_flight=2, reports_outcomes=True, clock=FakeClock()
    )

    def call(session, parent=None):
        return policy(
            {"kv_capacity_tokens": 10_000},
            session=session,
            parent_session=parent,
            input_tokens=4_000,
        )

    assert call("root").admitted
    assert call("other").reason == "kv_headroom"
    assert call("helper", "root").admitted
    assert call("second", "root").reason == "session_in_flight"
