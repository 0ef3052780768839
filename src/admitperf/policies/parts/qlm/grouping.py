"""The groups of what waits, as an optimizer takes them.

It walks over every caller that is noted, so it is called where nobody waits for it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

from admitperf.policies.parts.qlm.group import (
    GROUPS_MOST,
    Group,
    Key,
    Kind,
    Note,
    kind_of,
)

Answers = Mapping[Kind, tuple[float, float]]
"""Mean in tokens and variance in tokens squared of one answer, by kind."""


def grouped(notes: Iterable[Note], answers: Answers, now_s: float) -> list[Group]:
    """What waits, nearest deadline first; at most `GROUPS_MOST`.

    The fullest groups stay, the others join the nearest of them.

    Args:
        notes: who was sent off.
        answers: of each kind that is noted.
        now_s: on the policy's clock; who is waited for no longer is left out.
    """
    due_s: dict[Key, float] = {}
    counts: Counter[Key] = Counter()
    for key, due, until_s in notes:
        if until_s > now_s:
            counts[key] += 1
            due_s[key] = min(due, due_s.get(key, inf))
    made = [_group(keys, due_s, counts, answers) for keys in _joined(due_s, counts)]
    return sorted(made, key=lambda group: group.due_s)


def _group(
    keys: list[Key], due_s: Mapping[Key, float], counts: Counter[Key], answers: Answers
) -> Group:
    each = [(counts[key], *answers[kind_of(key)]) for key in keys]
    return Group(
        tuple(keys),
        sum(n for n, _, _ in each),
        min(due_s[key] for key in keys),
        sum(n * mean for n, mean, _ in each),
        sum(n * variance for n, _, variance in each),
    )


def _joined(due_s: Mapping[Key, float], counts: Counter[Key]) -> list[list[Key]]:
    """Keys that are one group: the fullest by themselves, the rest with the nearest."""
    by_size = sorted(due_s, key=lambda key: (-counts[key], due_s[key]))
    kept = by_size[:GROUPS_MOST]
    members = {key: [key] for key in kept}
    for key in by_size[GROUPS_MOST:]:
        here, due = key[0], due_s[key]
        nearest = min(kept, key=lambda k: (k[0] != here, abs(due_s[k] - due)))
        members[nearest].append(key)
    return list(members.values())
