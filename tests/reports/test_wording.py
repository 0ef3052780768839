"""How text is written for a terminal, and for a page that can show any."""

from threading import Thread

from admitperf.reports.wording import as_written, printable


def test_text_is_as_written_only_inside_the_block_and_only_there():
    """A terminal never gets it, whatever another thread shows at the moment."""
    heard = []
    with as_written():
        assert printable("naïve") == "naïve"
        other = Thread(target=lambda: heard.append(printable("naïve")))
        other.start()
        other.join()
    assert heard == [r"na\xefve"]
    assert printable("naïve") == r"na\xefve"
