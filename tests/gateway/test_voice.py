"""What the gateway says of itself while it runs."""

from admitperf.gateway import voice


class At:
    """A clock that stands at one moment."""

    def wall_ns(self):
        """Thirteen seconds after the year began."""
        return 1_767_225_613_999_999_999


def test_a_line_has_its_time_in_utc(monkeypatch):
    """Whatever zone the machine is in; the second that has begun."""
    lines = []
    monkeypatch.setattr(voice, "say", lines.append)
    voice.tell("ended: 0 cut", At())
    assert lines == ["2026-01-01T00:00:13Z ended: 0 cut"]
