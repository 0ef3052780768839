"""I12: a front door sees the reading, and what it sent since."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.histories import watched

from admitperf import Reading
from admitperf.core.own import FIRST_SLOTS
from admitperf.policies.queue_depth import QueueDepth

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(["a", "b", None])),
        st.tuples(st.just("end"), st.integers(0, 40)),
        st.tuples(
            st.just("read"),
            st.sampled_from(["a", "b", None]),
            st.integers(0, 2),
            st.integers(0, 5),
        ),
    ),
    max_size=60,
)


class Books:
    """What a host did, by plain counting."""

    def __init__(self, clock):
        self.clock = clock
        self.readings = {}
        self.most = {}
        self.full = set()
        self.started, self.ended = [], []
        for replica in ("a", "b", None):
            self.read(replica, 0, 0)

    def read(self, replica, waiting, running):
        """A reading of now; the one before it is used no more."""
        page = {
            "vllm:num_requests_waiting": waiting,
            "vllm:num_requests_running": running,
        }
        now_ns = self.clock.monotonic_ns()
        self.readings[replica] = Reading(
            page, taken_ns=now_ns, replica=replica, own_since=True
        )
        self.clock.advance(0.01)

    def expected(self, replica):
        """The queue that a decision on a replica's reading has to see."""
        reading = self.readings[replica]
        waiting, running = reading.raw.values()
        most = self.most[replica] = max(self.most.get(replica, 0), running)
        more = self._since(self.started, reading) - self._since(self.ended, reading)
        if waiting:
            self.full.add(replica)
        slots = most if replica in self.full else max(FIRST_SLOTS, 2 * most)
        free = 0 if waiting else slots - running
        return waiting + max(0, more - free)

    def _since(self, moves, reading):
        return sum(
            at_ns >= reading.taken_ns and reading.replica in (None, replica)
            for at_ns, replica in moves
        )


@given(steps=STEPS, most=st.integers(0, 4))
@settings(deadline=None, max_examples=150)
def test_i12_what_is_seen_is_the_reading_and_what_was_sent_since(steps, most):
    """I12: on every line, for replicas and for the pool, whatever came and went."""
    policy, clock, log = watched(QueueDepth, max_waiting=most)
    books, open_ = Books(clock), []
    for replica in books.readings:  # seen before anything is sent
        policy.refuse(books.readings[replica], "queue_depth", why="look")
        books.expected(replica)
    for kind, *rest in steps:
        if kind == "read":
            books.read(*rest)
        elif kind == "ask":
            wanted = books.expected(rest[0])
            d = policy(books.readings[rest[0]])
            assert log.decisions[-1]["signals"]["queue_depth"] == wanted
            if d.admitted:
                books.started.append((clock.monotonic_ns(), rest[0]))
                open_.append((d.request_id, rest[0]))
            clock.advance(0.01)
        elif open_:
            request_id, replica = open_.pop(rest[0] % len(open_))
            policy.outcome(request_id)
            books.ended.append((clock.monotonic_ns(), replica))
            clock.advance(0.01)
