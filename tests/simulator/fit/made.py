"""Runs that were made by hand-written steps, so that the truth about them is known."""

import json
from dataclasses import dataclass, field, replace
from random import Random

from admitperf.simulator.fit.recorded import Asked, Recorded

SIZES = {
    "max_num_seqs": 8,
    "kv_blocks": 511,
    "block_size": 32,
    "prefix_caching": False,
}


@dataclass(frozen=True)
class Costs:
    """What a step costs in a made run, in ms."""

    front: float = 4.0
    step: float = 9.0
    resident: float = 0.002
    prefill: float = 0.3
    sequence: float = 0.8


@dataclass
class _Client:
    asked: list = field(default_factory=list)  # prompt, answer, sent, chunks


def run(clients, requests=60, costs=None, noise=0.0, name="made", seed=1):
    """A closed loop on an engine with a slot for every client."""
    costs, chance, now_s, done = costs or Costs(), Random(seed), 1.0, []
    streams, left = {}, requests
    ready = [now_s] * clients
    while left > 0 or streams:
        for n in range(clients):
            if n not in streams and left > 0 and ready[n] + costs.front / 1e3 <= now_s:
                prompt, answer = chance.randint(64, 256), chance.randint(32, 128)
                streams[n] = [prompt, answer, ready[n], []]
                left -= 1
        if not streams:
            now_s = min(ready) + costs.front / 1e3
            continue
        new = [s for s in streams.values() if not s[3]]
        resident = sum(s[0] + len(s[3]) - 1 for s in streams.values() if s[3])
        took_ms = costs.step + costs.resident * resident
        took_ms += costs.prefill * sum(s[0] for s in new)
        took_ms += costs.sequence * len(streams)
        now_s += took_ms / 1e3 * chance.lognormvariate(-(noise**2) / 2, noise)
        for n, stream in list(streams.items()):
            stream[3].append((now_s, 1))
            if len(stream[3]) == stream[1]:
                done.append(streams.pop(n))
                ready[n] = now_s
    asked = [_asked(n, *one) for n, one in enumerate(sorted(done, key=lambda s: s[2]))]
    return Recorded(
        name=name, kind="load", asked=tuple(asked), clients=clients, engine=SIZES
    )


def _asked(n, prompt, answer, sent_s, chunks):
    return Asked(
        id=str(n),
        sent_s=sent_s,
        input_tokens=prompt,
        output_tokens=answer,
        max_output_tokens=answer,
        ttft_ms=(chunks[0][0] - sent_s) * 1e3,
        e2e_ms=(chunks[-1][0] - sent_s) * 1e3,
        chunks=tuple(chunks),
    )


def without_tokens(recorded):
    """The run as a log has it: when requests began and ended, and no more."""
    asked = tuple(replace(one, chunks=()) for one in recorded.asked)
    return replace(recorded, asked=asked, kind="log")


def written(recorded, path, **meta):
    """The run as the load generator writes it."""
    note = {"max_num_seqs": 8, "num_blocks": 512, "block_size": 32, **meta}
    args = {"closed": recorded.clients or 0, "rate": recorded.rate_per_s or 0}
    lines = [{"type": "meta", "t0_wall": 1.8e9, "args": args, "meta": note}]
    for one in recorded.asked:
        chunks = [[round(t - one.sent_s, 5), n] for t, n in one.chunks]
        lines.append(
            {
                "type": "req", "id": one.id, "sent": one.sent_s, "status": 200,
                "plen": one.input_tokens, "max_tokens": one.max_output_tokens,
                "chunks": chunks, "fin": one.end_s,
            }
        )  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
