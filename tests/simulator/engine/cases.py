"""Whole cases drawn at random: an engine, what is asked of it, and when to look.

Times are drawn finely, so that nothing arrives in the very instant in which a step
ends: there the two engines could differ by the last bit of a sum.
"""

from dataclasses import dataclass
from typing import Any

from admitperf.simulator.engine.events import End, FirstToken
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.traffic.arrival import Arrival

Act = tuple[float, str, Any]
"""When, "submit" or "cancel" or "look", and the arrival, the id, or None."""


@dataclass(frozen=True)
class Case:
    """One engine and everything done to it, in order of time.

    Attributes:
        model: the engine.
        seed: of its noise.
        remembered: chains its cache holds from the start, (name, tokens).
        acts: what is done.
    """

    model: EngineModel
    seed: int
    remembered: tuple[tuple[str, int], ...]
    acts: tuple[Act, ...]


def case(chance, requests=25):
    """A case out of a source of chance, `random.Random` or Hypothesis's."""
    drawn = model(chance)
    rate_s = chance.choice((0.02, 0.1, 0.4))
    arrivals, now_s, talks = [], 0.0, {}
    for number in range(requests):
        now_s += chance.choice((0.0, 1.0, 1.0)) * rate_s * chance.uniform(0.01, 2)
        arrivals.append(_arrival(chance, drawn, f"r{number}", now_s, talks))
    acts = [(one.at_s, "submit", one) for one in arrivals]
    acts += _cancels(chance, arrivals) + _looks(chance, now_s)
    remembered = (("system", chance.randint(1, drawn.kv_tokens // 2)),)
    return Case(
        drawn,
        chance.randrange(1000),
        remembered if chance.random() < 0.3 else (),
        tuple(sorted(acts, key=lambda act: act[0])),
    )


def model(chance):
    """An engine: tight or roomy, in small blocks or large, in chunks or not."""
    size = chance.choice((1, 16, 32))
    seqs = chance.choice((1, 3, 8))
    chunked = chance.random() < 0.8
    return EngineModel(
        max_num_seqs=seqs,
        kv_blocks=max(chance.choice((90, 200, 2000)) // size, 3),
        block_size=size,
        step_ms=chance.uniform(1, 20) + 2**0.5,  # never a simple sum of arrivals
        max_num_batched_tokens=chance.choice(
            (seqs + 2, 40, 2048) if chunked else (2048,)
        ),
        prefix_caching=chance.random() < 0.7,
        chunked_prefill=chunked,
        scheduling=chance.choice(("fcfs", "fcfs", "priority")),
        max_num_queued_reqs=chance.choice((None, None, 5)),
        max_num_queued_tokens=chance.choice((None, None, 200)),
        front_ms=chance.choice((0.0, 0.0, 7.3)),
        ms_per_resident_token=chance.choice((0.0, 0.01)),
        ms_per_prefill_token=chance.choice((0.0, 0.2)),
        ms_per_sequence=chance.choice((0.0, 0.5)),
        noise=chance.choice((0.0, 0.0, 0.3)),
        noise_steps=chance.choice((1, 5, 16)),
    )


def _arrival(chance, made, name, at_s, talks):
    most = made.longest_tokens
    answer = min(
        chance.choice((1, chance.randint(2, 30), chance.randint(20, 90))), most - 1
    )
    prefix, asked = _prefix(chance, name, most - answer, talks)
    return Arrival(
        id=name,
        at_s=at_s,
        input_tokens=asked,
        max_output_tokens=answer,
        output_tokens=answer,
        prefix=prefix,
        priority=chance.randrange(3),
    )


def _prefix(chance, name, most, talks):
    """What it repeats, and how long its prompt is: one of the kinds that occur."""
    kind = chance.choice(("alone", "session", "tail", "fork", "same"))
    if kind == "session":
        talk = f"talk-{chance.randrange(3)}"
        talks[talk] = asked = min(talks.get(talk, 0) + chance.randint(1, 60), most)
        return ((talk, max(asked - chance.choice((0, 0, 5)), 1)),), asked
    asked = chance.randint(1, min(most, 120))
    if kind == "alone" or asked < 3:
        return (), asked
    part = chance.randint(1, asked - 2)
    if kind == "tail":
        return (("system", part), (f"own-{name}", asked - part)), asked
    if kind == "fork":
        cut, fork = chance.choice((16, 20, 40)), f"fork-{chance.randrange(2)}"
        cut = min(cut, asked - 1)
        return (("system", cut), (fork, asked - cut)), asked
    return (("system", part),), asked


def _cancels(chance, arrivals):
    few = chance.choice((0.0, 0.15))
    gone = [one for one in arrivals if chance.random() < few]
    return [(one.at_s + chance.uniform(0.001, 2), "cancel", one.id) for one in gone]


def _looks(chance, until_s):
    return [(chance.uniform(0, until_s + 1), "look", None) for _ in range(12)]


def played(made, engine):
    """Everything that came of a case: events, answers, and what the looks showed."""
    for name, tokens in made.remembered:
        engine.remember(name, tokens)
    happened, inside = [], {}
    for at_s, what, about in made.acts:
        if at_s > engine.now_s:
            happened += _events(engine.run_to(at_s), inside)
        if what == "submit":
            happened.append(("submit", about.id, engine.submit(about)))
            inside |= {about.id: False} if happened[-1][-1] else {}
        elif what == "cancel":
            engine.cancel(about)
            inside.pop(about, None)
        else:
            happened.append(_look(engine, inside))
    return (
        happened + _events(engine.run_to(float("inf")), inside) + _probed(made, engine)
    )


def _events(events, inside):
    happened = []
    for event in events:
        happened.append(written(event))
        inside[event.arrival.id] = True
        if not isinstance(event, FirstToken):
            del inside[event.arrival.id]
    return happened


def written(event):
    """An event as a tuple: its kind, the request, and its numbers, times in s."""
    head = (type(event).__name__, event.arrival.id, event.at_s)
    if not isinstance(event, End):
        return head
    gap_s = None if event.max_gap_ms is None else event.max_gap_ms / 1e3
    times_s = (event.ttft_ms / 1e3, gap_s, event.e2e_ms / 1e3)
    return (*head, *times_s, event.preempted, event.cached_tokens)


def _look(engine, inside):
    state = (engine.running, engine.waiting, engine.kv_fraction, engine.next_s)
    answers = [(name, engine.given(name)) for name in sorted(inside)]
    answers += [(name, engine.cached(name)) for name in sorted(inside) if inside[name]]
    return ("look", engine.now_s, *state, *answers)


def _probed(made, engine):
    """How much of each chain the cache still holds: a long prompt on it, one by one."""
    happened = []
    most = made.model.longest_tokens - 1
    for name in ("system", "talk-0", "talk-1", "talk-2"):
        probe = Arrival(
            id=f"probe {name}", at_s=engine.now_s, input_tokens=most,
            max_output_tokens=1, output_tokens=1, prefix=((name, most),),
        )  # fmt: skip
        engine.submit(probe)
        happened += [written(event) for event in engine.run_to(float("inf"))]
    return happened
