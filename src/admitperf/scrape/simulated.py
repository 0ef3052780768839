"""Whether a page comes from a simulated engine, which says so on it."""

from collections.abc import Mapping

from admitperf.core.series import Series

INFO = "admitperf_simulated_info"
"""The series by which `admitperf sim serve` says it, with the profile as a label."""


def simulated_by(page: Mapping[str, float]) -> str | None:
    """The profile of the simulated engine that a page is of.

    Args:
        page: metric key to number.

    Returns:
        Its name, empty when the page does not give one; of several engines the first.
        None = the page does not say that it is simulated.
    """
    for labels, _ in Series(page).samples(INFO):
        return labels.get("profile", "")
    return None
