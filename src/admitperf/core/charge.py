"""What a started request takes from an account of its policy's."""

from collections.abc import Hashable, Iterator


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


def charges(told: object) -> Iterator[Charge]:
    """The charges in what `decided` returned: one, several, nested, or none."""
    if isinstance(told, Charge):
        yield told
    elif isinstance(told, (tuple, list)):
        for one in told:
            yield from charges(one)
