"""Whether two machines agree about the time."""

from admitperf.lab.doctor.finding import Finding, fine, not_asked, problem

MOST_SKEW_S = 2.0
"""Plain choice: `date` says whole seconds, so up to a second is no difference."""


def clock_finding(check: str, whose: str, ahead_s: float | None) -> Finding:
    """What a server's `date` says of its clock.

    Args:
        check: its name.
        whose: clock, in words.
        ahead_s: how far it is ahead of ours; None = not said.
    """
    if ahead_s is None:
        return not_asked(check, "its answers have no date header")
    if abs(ahead_s) <= MOST_SKEW_S:
        return fine(check, f"{whose} clock agrees with ours, to {MOST_SKEW_S:g} s")
    where = "ahead of" if ahead_s > 0 else "behind"
    says = f"{whose} clock is {abs(ahead_s):.0f} s {where} ours"
    fix = "let both machines keep time with NTP; logs of both cannot be joined by time"
    return problem(check, says, fix)
