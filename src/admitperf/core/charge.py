"""What a started request takes from an account of its policy's."""

from collections.abc import Hashable, Iterator
from math import isfinite


class Charge:
    """An amount held in an account for as long as a request is open.

    A policy returns it from `decided`; the ledger adds it up by account
    (`Snapshot.charged`, `Snapshot.charges`) and gives it back with the request's end,
    its outcome or its lease, so that a policy's own books leak nothing. The outcome
    carries it back to the policy (`Outcome.charge`).

    Args:
        account: which one; begin it with the policy's name.
        amount: in the unit of the account.
    """

    __slots__ = ("account", "amount")

    def __init__(self, account: Hashable, amount: float = 1.0) -> None:
        self.account = account
        self.amount = amount

    def __repr__(self) -> str:
        return f"Charge({self.account!r}, {self.amount:g})"


def frozen(told: object) -> tuple[tuple[Hashable, float], ...]:
    """The charges in what `decided` returned, as they are now: (account, amount).

    Raises:
        TypeError: an account cannot be a key, or an amount is no finite number.
    """
    held = tuple((one.account, one.amount) for one in charges(told))
    for account, amount in held:
        hash(account)
        number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
        if not number or not isfinite(amount):
            raise TypeError(
                f"the amount of {account!r} is {amount!r}, no finite number"
            )
    return held


def charges(told: object) -> Iterator[Charge]:
    """The charges in what `decided` returned: one, several, nested, or none."""
    if isinstance(told, Charge):
        yield told
    elif isinstance(told, (tuple, list)):
        for one in told:
            yield from charges(one)
