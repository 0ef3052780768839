"""Nothing is lost and nothing appears: requests, tokens, blocks, time, chance."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from tests.simulator.engine.cases import case, played, written

from admitperf.core.digest import blake2b
from admitperf.simulator import Arrival, End, Engine, FirstToken, stream

CASES = range(2000, 2120)


class Books:
    """What became of every request of a case, kept from outside."""

    def __init__(self, one):
        self.case = one
        self.engine = Engine(one.model, one.seed)
        self.count = Counter()
        self.tokens = 0
        self.inside = {}
        self.last_s = 0.0

    def play(self, look):
        """Goes through the case and looks at every act, just before and after it."""
        for name, tokens in self.case.remembered:
            self.engine.remember(name, tokens)
        for at_s, what, about in self.case.acts:
            self._run(at_s)
            look(self)
            self._act(what, about)
            look(self)
        self._run(float("inf"))
        look(self)

    def _run(self, until_s):
        if until_s > self.engine.now_s:
            for event in self.engine.run_to(until_s):
                self._book(event)

    def _act(self, what, about):
        if what == "submit":
            taken = self.engine.submit(about)
            self.count["submitted"] += 1
            self.count["refused"] += not taken
            if taken:
                self.inside[about.id] = about
        elif what == "cancel" and about in self.inside:
            self.tokens += self.engine.given(about)
            self.engine.cancel(about)
            self.count["cancelled"] += 1
            del self.inside[about]

    def _book(self, event):
        assert event.at_s >= self.last_s, "time went back"
        self.last_s = event.at_s
        if isinstance(event, FirstToken):
            assert event.arrival.id in self.inside
            return
        del self.inside[event.arrival.id]
        self.count["ended" if isinstance(event, End) else "refused"] += 1
        if isinstance(event, End):
            self.tokens += event.arrival.output_tokens


def kept(look):
    """Every case played, with a look at the books at every act."""
    for number in CASES:
        Books(case(stream(number, "case"))).play(look)


def test_every_request_is_somewhere():
    """Submitted = ended + refused + cancelled + inside, at every look."""

    def look(books):
        parts = ("ended", "refused", "cancelled")
        gone = sum(books.count[part] for part in parts)
        assert books.count["submitted"] == gone + len(books.inside)
        leaving = books.engine.inside - len(books.inside)
        assert 0 <= leaving <= books.count["cancelled"]
        assert leaving == 0 or books.engine.running + books.engine.waiting
        assert books.engine.running + books.engine.waiting <= books.engine.inside

    kept(look)


def test_every_token_is_somebodys():
    """Given in all = what ended, left and is inside were given, at every look."""

    def look(books):
        now = sum(books.engine.given(name) for name in books.inside)
        assert books.engine.given_tokens == books.tokens + now

    kept(look)


def test_every_block_is_free_used_or_cached():
    """The free queue holds what is not used, cached or not, and never too much."""

    def look(books):
        engine, blocks = books.engine, books.engine._blocks
        assert -1e-9 <= engine.kv_fraction <= 1 + 1e-9
        if blocks._caching:
            lengths = [one.high - one.low for one in blocks._queue.values()]
            assert sum(lengths) == blocks.free
            assert min(lengths, default=1) >= 1
        if not engine.inside:
            assert blocks.free == engine.model.kv_blocks
            assert engine.kv_fraction == 0

    kept(look)


def test_an_engine_left_alone_has_its_whole_cache_again():
    """After each case, cancels and all, the longest request fits and ends."""
    for number in CASES:
        books = Books(case(stream(number, "case")))
        books.play(lambda _: None)
        engine, most = books.engine, books.engine.model.longest_tokens
        last = Arrival(
            id="last", at_s=engine.now_s, input_tokens=1, max_output_tokens=most - 1,
            output_tokens=most - 1,
        )  # fmt: skip
        assert engine.submit(last)
        *_, end = engine.run_to(float("inf"))
        assert (end.arrival, end.preempted, engine.inside) == (last, 0, 0)


def test_time_never_goes_back():
    """Neither the engine's now nor what it says comes next."""
    seen = {}

    def look(books):
        before = seen.get(id(books), (books, 0.0))[1]
        now_s = books.engine.now_s
        assert before <= now_s <= books.engine.next_s
        seen[id(books)] = (books, now_s)

    kept(look)


def test_each_request_has_one_story():
    """One first token and then one end, or one refusal; times that fit together."""
    for number in CASES:
        one = case(stream(number, "case"))
        happened = played(one, Engine(one.model, one.seed))
        kinds = {}
        for told in happened:
            if told[0] in {"FirstToken", "End", "Refused"}:
                kinds.setdefault(told[1], []).append(told)
        for story in kinds.values():
            _check_story(story)


def _check_story(story):
    names = [told[0] for told in story]
    assert names in (["FirstToken"], ["FirstToken", "End"], ["Refused"])
    if names[-1] == "End":
        (_, _, first_s), (_, _, end_s, ttft_s, gap_s, e2e_s, _, _) = story
        assert end_s - first_s == pytest.approx(e2e_s - ttft_s, abs=1e-9)
        assert (gap_s or 0.0) <= e2e_s - ttft_s + 1e-9


# ------------------------------------------------------------------ the same again


def digest():
    """Of all that happens in twenty cases, to the last bit."""
    told = blake2b(digest_size=16)
    for number in range(20):
        one = case(stream(number, "case"))
        told.update(repr(played(one, Engine(one.model, one.seed))).encode())
    return told.hexdigest()


@pytest.mark.parametrize("hash_seed", ["0", "1", "4294967295"])
def test_another_process_tells_the_same_to_the_bit(hash_seed, root):
    """Whatever Python's own hashing is seeded with."""
    place = "tests.simulator.engine.test_conservation"
    code = f"from {place} import digest; print(digest())"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout.strip() == digest()


def test_noise_is_the_seeds():
    """Another seed is another run, and the same one the same."""
    one = next(c for c in map(_case, range(100)) if c.model.noise)
    first, again, other = (
        [written(event) for event in _noisy(one, seed)] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def _case(number):
    return case(stream(number, "case"))


def _noisy(one, seed):
    engine = Engine(one.model, seed)
    for _, what, about in one.acts:
        if what == "submit":
            engine.submit(about)
    return engine.run_to(float("inf"))


def test_the_cases_have_something_to_book():
    """They end, refuse and cancel, at the door and at the queue: no sum above is 0."""
    found = Counter()
    for number in CASES:
        books = Books(case(stream(number, "case")))
        books.play(lambda _: None)
        found += books.count
    assert min(found[part] for part in ("ended", "refused", "cancelled")) > 20
