"""What waits, as far as an ingress can know: callers that were sent off for now.

A refused caller holds nothing here but a note, until it is let in or does not come
back.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from math import inf

from admitperf.policies.parts.qlm.answer_spread import AnswerSpread
from admitperf.policies.parts.qlm.group import GROUPS_MOST, Group, Key, kind_of

WAITING_MOST = 500
"""Callers noted, the latest ones. Plain choice: about 120 KB, and a look at all of them
takes a fifth of a millisecond."""

KINDS_MOST = 32
"""Groups told apart; what is new then keeps its deadline class alone. Plain choice:
four times what is ordered, so that invented names cost nothing."""

PATIENCE = 1.5
"""A caller is waited for so many times as long as it was told to stay away. Origin:
research notes, 7.4."""


class VirtualQueue:
    """Callers that will come back, by group. Bounded, and each note expires."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, tuple[Key, float, float]] = OrderedDict()
        self._counts: Counter[Key] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def count(self, key: Key) -> int:
        """Callers of a group."""
        return self._counts[key]

    def note(self, name: str, key: Key, due_s: float, until_s: float) -> None:
        """Takes a caller that was sent off; again, it keeps its first due time.

        Args:
            name: of the call, the same when it comes back.
            key: its group.
            due_s: when it is due, on the policy's clock.
            until_s: how long it is waited for, on that clock.
        """
        before = self.drop(name)
        if key not in self._counts and len(self._counts) >= KINDS_MOST:
            key = None, None, key[2]
        self._waiting[name] = key, min(due_s, before), until_s
        self._counts[key] += 1
        if len(self._waiting) > WAITING_MOST:
            self.drop(next(iter(self._waiting)))

    def drop(self, name: str) -> float:
        """Lets a caller go and returns when it was due; infinity for one not noted."""
        noted = self._waiting.pop(name, None)
        if noted is None:
            return inf
        key = noted[0]
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
        return noted[1]

    def expire(self, now_s: float) -> None:
        """Forgets who did not come back."""
        gone = [name for name, noted in self._waiting.items() if noted[2] <= now_s]
        for name in gone:
            self.drop(name)

    def groups(self, answers: AnswerSpread) -> list[Group]:
        """What waits, nearest deadline first; at most `GROUPS_MOST`.

        The fullest groups stay, the others join the nearest of them.

        Args:
            answers: how long they are, by kind.
        """
        due_s: dict[Key, float] = {}
        for key, due, _ in self._waiting.values():
            due_s[key] = min(due, due_s.get(key, inf))
        members = _joined(due_s, self._counts)
        made = [self._group(keys, due_s, answers) for keys in members]
        return sorted(made, key=lambda group: group.due_s)

    def _group(
        self,
        keys: Sequence[Key],
        due_s: dict[Key, float],
        answers: AnswerSpread,
    ) -> Group:
        counts = [self._counts[key] for key in keys]
        each = [
            (n, *answers.of(kind_of(key))) for n, key in zip(counts, keys, strict=True)
        ]
        return Group(
            tuple(keys),
            sum(counts),
            min(due_s[key] for key in keys),
            sum(n * mean for n, mean, _ in each),
            sum(n * variance for n, _, variance in each),
        )


def _joined(due_s: dict[Key, float], counts: Counter[Key]) -> list[list[Key]]:
    """Keys that are one group: the fullest by themselves, the rest with the nearest."""
    by_size = sorted(due_s, key=lambda key: (-counts[key], due_s[key]))
    kept = by_size[:GROUPS_MOST]
    members = {key: [key] for key in kept}
    for key in by_size[GROUPS_MOST:]:
        here, due = key[0], due_s[key]
        nearest = min(kept, key=lambda k: (k[0] != here, abs(due_s[k] - due)))
        members[nearest].append(key)
    return list(members.values())
