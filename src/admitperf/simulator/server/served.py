"""What the server counts beside the engine."""

from collections import Counter

from admitperf.simulator.engine.events import End
from admitperf.simulator.engine.tally import GAP_S, Histogram
from admitperf.simulator.server.part import Part

_AGAIN = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)
_N = (1.0, 2.0, 5.0, 10.0, 20.0)


def tokens_bounds(most: int) -> tuple[float, ...]:
    """Upper bounds for counts of tokens, as vLLM makes them: 1, 2, 5, 10 ... `most`."""
    bounds, power = list[float](), 1
    while power <= most:
        bounds += [float(power * step) for step in (1, 2, 5) if power * step <= most]
        power *= 10
    return tuple(bounds)


class Served:
    """Counters of requests that ended, all at 0.

    Args:
        longest_tokens: of prompt and answer.

    Attributes:
        finished: answers by why they ended, "stop" or "length".
        http: answers by path, method and class of status.
        streamed: ended answers by whether they were streamed.
        prompt_tokens, answer_tokens, most_tokens, computed_tokens: of each request: its
            prompt, its answer, the bound on that, and what of the prompt was computed.
        n: answers each request asked for.
        again: how often each was thrown out of memory.
        token_s: mean time between its tokens, in seconds.
        prompts_total, answers_total, cached_total: tokens of requests that ended.
    """

    def __init__(self, longest_tokens: int) -> None:
        bounds = tokens_bounds(longest_tokens)
        self.finished = {"stop": 0, "length": 0}
        self.http: Counter[tuple[str, str, str]] = Counter()
        self.streamed = {True: 0, False: 0}
        self.prompt_tokens = Histogram(bounds)
        self.answer_tokens = Histogram(bounds)
        self.most_tokens = Histogram(bounds)
        self.computed_tokens = Histogram(bounds)
        self.n = Histogram(_N)
        self.again = Histogram(_AGAIN)
        self.token_s = Histogram(GAP_S)
        self.prompts_total = self.answers_total = self.cached_total = 0

    def ended(self, part: Part, end: End, *, stream: bool) -> None:
        """Counts a request that got its whole answer."""
        self.finished[part.finish] += 1
        self.streamed[stream] += 1
        self.prompt_tokens.add(part.tokens)
        self.answer_tokens.add(part.length)
        self.most_tokens.add(end.arrival.max_output_tokens)
        self.computed_tokens.add(part.tokens - end.cached_tokens)
        self.n.add(1)
        self.again.add(end.preempted)
        self.prompts_total += part.tokens
        self.answers_total += part.length
        self.cached_total += end.cached_tokens
        if part.length > 1:
            decode_s = (end.e2e_ms - end.ttft_ms) / 1e3
            self.token_s.add(decode_s / (part.length - 1))
