"""Chance is the seed's and the name's, in every process."""

from admitperf.simulator import stream


def test_a_stream_is_what_it_always_was():
    """The first draws of one seed and name, as written down: no process differs."""
    chance = stream(7, "arrivals")
    assert [chance.randrange(1000) for _ in range(5)] == [816, 88, 281, 65, 989]


def test_another_name_or_seed_is_another_stream():
    """Drawing more of one thing moves no other."""
    drawn = {
        tuple(stream(seed, name).random() for _ in range(3))
        for seed in (1, 2, 12)
        for name in ("a", "b", "2/a")
    }
    assert len(drawn) == 9
    one, other = stream(1, "a"), stream(1, "b")
    one.random()
    assert other.random() == stream(1, "b").random()
