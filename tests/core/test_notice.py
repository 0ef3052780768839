"""What an operator should hear is said once, whoever speaks."""

import sys
import threading

from admitperf.core import notice


def test_two_threads_may_speak_at_once(monkeypatch):
    """Each notice is said once, and neither thread finds the other's gone."""
    notice.speak()
    said, faults = [], []
    monkeypatch.setattr(notice, "_tell", said.append)

    def speak(who):
        try:
            for n in range(500):
                notice._waiting.append(f"{who}/{n}")
                notice.speak()
        except IndexError as error:
            faults.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=speak, args=(n,)) for n in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)
    assert faults == []
    assert len(said) == len(set(said)) == 2000
