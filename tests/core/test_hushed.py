"""Policies that are blinded on purpose say nothing, and speak again afterwards."""

import logging

from admitperf.core import notice


def test_what_is_said_while_hushed_is_not_heard(caplog):
    """Neither then nor later."""
    with notice.hushed():
        notice.say("blinded on purpose")
    notice.speak()
    assert caplog.messages == []


def test_the_voice_comes_back(caplog):
    """Whoever runs commands in one process hears the next notice."""
    with notice.hushed():
        pass
    notice.say("blind in earnest")
    notice.speak()
    assert caplog.messages == ["blind in earnest"]


def test_a_logger_that_was_off_stays_off():
    """The host's choice is the host's."""
    logger = logging.getLogger("admitperf")
    logger.disabled = True
    try:
        with notice.hushed():
            pass
        assert logger.disabled
    finally:
        logger.disabled = False
