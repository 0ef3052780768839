"""When a first token comes at the latest: bounds from schedulability analysis.

Prompts are computed in chunks of `chunk` tokens, one a step. A step takes `alpha` for
each prompt token in it, `beta` for each answer it carries on, and `gamma` besides. All
times of one call are in one unit, milliseconds or seconds.
"""

import math

DECODES_MOST = 1e9
"""Answers at most. Plain choice: more than any engine carries on, and a number."""


def prefill_time(tokens: float, chunk: int, alpha: float, gamma: float) -> float:
    """Time to compute a prompt alone: so many chunks, each with its step.

    At least one chunk: of a prompt that is cached whole, the last token is computed.
    """
    return max(1, math.ceil(tokens / chunk)) * (alpha * chunk + gamma)


def first_token_bound(load: float, cost: float, deadline: float) -> float:
    """Theorem 1: no first token comes later than this after its arrival.

    Args:
        load: prefill time that arrives per unit of time, below 1; at 1 there is no
            bound and the result is infinite.
        cost: prefill time of this prompt.
        deadline: until its first token.
    """
    if load >= 1.0:
        return math.inf
    return load * deadline / (1.0 - load) + cost


def load_most(cost: float, deadline: float) -> float:
    """The highest load at which the bound is within the deadline.

    Theorem 1 solved for the load: (D - C) / (2D - C), below one half whatever the
    deadline; 0 or less when the prompt alone takes as long as its deadline.
    """
    return (deadline - cost) / (2.0 * deadline - cost) if deadline > cost else -1.0


def decodes_most(
    budget: float, chunk: int, alpha: float, beta: float, gamma: float
) -> int:
    """Theorem 3: answers that one step carries on within the budget for a token.

    With one prompt chunk in the same step, without which the published 731 does not
    come out.
    """
    return math.floor(min((budget - gamma - alpha * chunk) / beta, DECODES_MOST))
