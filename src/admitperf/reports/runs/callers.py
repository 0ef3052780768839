"""Who asked: tenants and their shares, sessions and what became of them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.ratio import Share
from admitperf.reports.runs.log import Log
from admitperf.reports.runs.store import Store
from admitperf.reports.runs.tables import kind, lines


@dataclass(frozen=True, slots=True)
class Callers:
    """The tenants and the sessions of one run.

    Attributes:
        tenants: how many names there are; 0 = no decision carries one.
        largest: requests of the tenant with most of them, of those that name one.
        largest_tokens: prompt tokens of the tenant with most of them, of those that
            name one and say their tokens.
        jain: Jain's index of the tenants' requests: 1 = all alike, 1/n = one has all;
            None below two tenants.
        sessions: how many names there are; 0 = no decision carries one.
        calls: requests in each session.
        several: sessions of more than one request.
        refused: sessions with a request that was not let in.
        failed: sessions with an outcome that was not ok, of those with an outcome.
    """

    tenants: int
    largest: Share
    largest_tokens: Share
    jain: float | None
    sessions: int
    calls: Spread
    several: Share
    refused: Share
    failed: Share


def callers(log: Log) -> defaultdict[int, Callers]:
    """The callers of every run, by its number.

    Args:
        log: with the views `decisions` and `outcomes`.
    """
    if not {"tenant", "session"} & set(log.names.facts):
        return defaultdict(lambda: _callers(_NO_TENANTS, _NO_SESSIONS))
    _name(log)
    tenants, sessions = _tenants(log.store), _sessions(log.store)
    found = {
        run: _callers(tenants.get(run, _NO_TENANTS), sessions.get(run, _NO_SESSIONS))
        for run in {*tenants, *sessions}
    }
    return defaultdict(lambda: _callers(_NO_TENANTS, _NO_SESSIONS), found)


_Tenants = tuple[int, int, int, int, int, float | None]
_Sessions = tuple[int, Spread, int, int, int, int]
_NO_TENANTS: _Tenants = (0, 0, 0, 0, 0, None)
_NO_SESSIONS: _Sessions = (0, Spread.of(()), 0, 0, 0, 0)


def _callers(tenants: _Tenants, sessions: _Sessions) -> Callers:
    names, most, of, most_tokens, tokens, jain = tenants
    n, calls, several, refused, failed, ended = sessions
    return Callers(
        tenants=names,
        largest=Share.part(most, of),
        largest_tokens=Share.part(most_tokens, tokens),
        jain=jain if names > 1 else None,
        sessions=n,
        calls=calls,
        several=Share.part(several, n),
        refused=Share.part(refused, n),
        failed=Share.part(failed, ended),
    )


def _name(log: Log) -> None:
    """Makes the table `named`: each decision with what its line says of its caller.

    The names have no column in `decision`, where only few reports need them.
    """
    text = lines(log.store, log.texts)
    log.store.rows(
        f"""CREATE OR REPLACE TABLE named AS
        SELECT d.run_n, d.process_n, d.seq, d.admitted, d.gone,
            any_value(said.tenant) AS tenant, any_value(said.session) AS session,
            any_value(said.tokens) AS tokens
        FROM (
            SELECT {_text("$.run")} AS run, {_whole("$.seq")} AS seq,
                md5_number_lower({_text("$.facts.tenant")}) AS tenant,
                md5_number_lower({_text("$.facts.session")}) AS session,
                {_whole("$.facts.input_tokens")} AS tokens
            FROM {text} WHERE {kind("decision")}) said
        JOIN decisions d ON d.run = said.run AND d.seq = said.seq
        GROUP BY ALL"""
    )


def _text(path: str) -> str:
    return f"json_extract_string(line, '{path}')"


def _whole(path: str) -> str:
    return f"TRY_CAST({_text(path)} AS BIGINT)"


def _tenants(store: Store) -> Mapping[int, _Tenants]:
    return {
        run: (names, most, of, most_tokens or 0, tokens or 0, jain)
        for run, names, most, of, most_tokens, tokens, jain in store.rows(
            """WITH each AS (
                SELECT run_n, tenant, count(*) AS n, sum(tokens) AS tokens
                FROM named WHERE tenant IS NOT NULL GROUP BY ALL)
            SELECT run_n, count(*), max(n), sum(n)::BIGINT, max(tokens)::BIGINT,
                sum(tokens)::BIGINT,
                sum(n)::DOUBLE ** 2 / (count(*) * sum(n::DOUBLE ** 2))
            FROM each GROUP BY run_n"""
        )
    }


def _sessions(store: Store) -> Mapping[int, _Sessions]:
    return {
        run: (n, Spread.read(calls), several, refused, failed, ended)
        for run, n, calls, several, refused, failed, ended in store.rows(
            f"""WITH each AS (
                SELECT named.run_n, session, count(*) AS n,
                    bool_or(NOT named.admitted AND NOT gone) AS refused,
                    coalesce(bool_or(NOT ok), false) AS failed, count(ok) > 0 AS ended
                FROM named LEFT JOIN outcomes ON outcomes."of" = named.seq
                    AND outcomes.process_n = named.process_n
                WHERE session IS NOT NULL GROUP BY ALL)
            SELECT run_n, count(*), {spread_of("n")}, count(*) FILTER (n > 1),
                count(*) FILTER (refused), count(*) FILTER (failed),
                count(*) FILTER (ended)
            FROM each GROUP BY run_n"""
        )
    }
