"""Fluid equations of one engine: what its batch settles to under steady arrivals.

Requests of a class come at a rate per second, with prompts of `length` tokens and
answers of `output` tokens. A step of the engine gives each running request one token
and takes d0 + d1 x resident tokens, in seconds.
"""


def class_tokens(count: float, length: float, output: float) -> float:
    """Resident tokens of a class with `count` requests at each stage.

    There are output + 1 stages, and at the middle one half of the answer is there.

    With the class's rate for the count it is the class's part of the `load` below, in
    tokens per second of a step.
    """
    return count * (output + 1.0) * (length + output / 2.0)


def step_s(resident: float, d0: float, d1: float) -> float:
    """Seconds of a step with so many tokens resident."""
    return d0 + d1 * resident


def balanced_step_s(load: float, d0: float, d1: float) -> float | None:
    """The step at which as many requests end as come; resident are load times this.

    None = there is none: each step brings more than the next one works off.

    Args:
        load: `class_tokens` of the rates of all classes together.
    """
    left = 1.0 - d1 * load
    return d0 / left if left > 0.0 else None


def demand(load: float, room: float, d0: float, d1: float) -> float:
    """How much of the load that just fits is offered: over 1 it does not fit.

    At 1 the balanced batch fills the room exactly. Any load that fits the room is one
    that balances, so this one number stands for both conditions.
    """
    return load * step_s(room, d0, d1) / room


def in_flight(rate: float, output: float, tau_s: float) -> float:
    """Requests of a class that are open in balance, by Little's law."""
    return rate * tau_s * (output + 1.0)
