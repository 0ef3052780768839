"""Which replica a request goes to."""

import pytest
from tests.gateway.proxy.rig import pool

from admitperf.gateway.proxy.balance import Balancer
from admitperf.gateway.setup import PoolSetup, Upstream


class _Clock:
    """Time that a test moves."""

    def __init__(self):
        self.ns = 10**9

    def monotonic_ns(self):
        return self.ns

    wall_ns = monotonic_ns

    def forward(self, seconds):
        self.ns += int(seconds * 1e9)


def _balancer(count=3, most=100):
    urls = [f"http://h{n}" for n in range(count)]
    clock = _Clock()
    return Balancer(pool(*urls), most, clock), clock


def test_requests_go_where_the_fewest_are():
    """Each of nine that stay open goes to the least busy one."""
    balancer, _ = _balancer()
    for _ in range(9):
        balancer.pick().__enter__()
    assert [one.in_flight for one in balancer.replicas] == [3, 3, 3]


def test_in_quiet_hours_all_have_their_turn():
    """One request at a time does not always meet the first replica."""
    balancer, _ = _balancer()
    assert {balancer.pick().name for _ in range(6)} == {"r0", "r1", "r2"}


def test_a_request_that_fails_is_not_counted_for_ever():
    """Counting ends with the block, however it ends."""
    balancer, _ = _balancer(1)
    replica = balancer.pick()
    seen = []

    def fails():
        with replica:
            seen.append(replica.in_flight)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert seen == [1]
    assert replica.in_flight == 0


def test_a_session_stays_until_its_replica_is_much_busier():
    """It moves above 1.25 times the least, and 2 more; then it stays where it went."""
    balancer, _ = _balancer()
    home = balancer.pick("s")
    for one in balancer.replicas:
        one.in_flight = 8
    home.in_flight = 12
    assert balancer.pick("s") is home
    home.in_flight = 13
    moved = balancer.pick("s")
    assert moved is not home
    home.in_flight = 8
    assert balancer.pick("s") is moved


def test_sessions_remembered_are_bounded():
    """The one not seen for longest is forgotten first."""
    balancer, _ = _balancer(most=3)
    for name in "abcad":
        balancer.pick(name)
    assert list(balancer._homes) == ["c", "a", "d"]


def test_a_replica_that_is_down_is_left_alone_and_tried_again():
    """After a second one request tries it, and the rest still go elsewhere."""
    balancer, clock = _balancer(2)
    down = balancer.replicas[0]
    balancer.failed(down)
    assert {balancer.pick().name for _ in range(4)} == {"r1"}
    clock.forward(1.01)
    picked = [balancer.pick().name for _ in range(6)]
    assert picked.count("r0") == 1


def test_the_pause_doubles_up_to_half_a_minute_and_ends_with_success():
    """1, 2, 4, 8, 16, 30, 30 seconds; a connection makes it 1 again."""
    balancer, clock = _balancer(2)
    down = balancer.replicas[0]
    for pause_s in (1, 2, 4, 8, 16, 30, 30):
        balancer.failed(down)
        clock.forward(pause_s - 0.01)
        assert down.down(clock.ns)
        clock.forward(0.02)
        assert not down.down(clock.ns)
        balancer.pick(named="r0")
    down.worked()
    balancer.failed(down)
    clock.forward(1.01)
    assert not down.down(clock.ns)


def test_many_that_meet_one_fault_count_once():
    """A hundred refusals at the same time are not a hundred outages."""
    balancer, clock = _balancer(2)
    down = balancer.replicas[0]
    for _ in range(100):
        balancer.failed(down)
    clock.forward(1.01)
    assert not down.down(clock.ns)


def test_where_all_are_down_one_is_still_tried():
    """Down is a guess; with nothing better a request goes there."""
    balancer, _ = _balancer(2)
    for one in balancer.replicas:
        balancer.failed(one)
    assert balancer.pick() is not None


def test_what_was_tried_is_not_picked_again():
    """None once all were; with a single replica too."""
    balancer, _ = _balancer(2)
    first = balancer.pick("s")
    second = balancer.pick("s", without=[first])
    assert second is not first
    assert balancer.pick("s", without=[first, second]) is None
    single, _ = _balancer(1)
    assert single.pick(without=single.replicas) is None


def test_a_request_goes_to_the_replica_it_was_judged_for():
    """The name on its ticket counts before all else, for as long as it is known."""
    balancer, _ = _balancer()
    assert [balancer.pick(named="r2").name for _ in range(4)] == ["r2"] * 4
    assert balancer.pick(named="gone") is not None


def test_the_order_begins_where_a_session_goes():
    """What is named first is what is picked; then the least busy of the others."""
    balancer, _ = _balancer()
    first = balancer.pick("s")
    busy = next(one for one in balancer.replicas if one is not first)
    busy.__enter__()
    names = balancer.order("s")
    assert names[0] == balancer.pick("s").name == first.name
    assert names[2] == busy.name
    assert sorted(names) == ["r0", "r1", "r2"]


@pytest.mark.parametrize(
    ("url", "host", "prefix"),
    [
        ("http://a.example", b"a.example", b""),
        ("http://a.example:80/", b"a.example", b""),
        ("https://a.example:8443/x/", b"a.example:8443", b"/x"),
        ("http://[::1]:8000", b"[::1]:8000", b""),
        ("http://user:secret@a.example:81", b"a.example:81", b""),
    ],
)
def test_the_host_header_is_the_upstreams(url, host, prefix):
    """A usual port is left out; what a URL says of a user is never sent."""
    setup = PoolSetup(upstreams=(Upstream(url=url, metrics_url=url, name="a"),))
    (replica,) = Balancer(setup).replicas
    assert (replica.host, replica.prefix) == (host, prefix)
    assert "secret" not in replica.url
