"""Takes down what an `up` has started, whatever became of it, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from admitperf.provision import cloud, processes, state
from admitperf.provision.fault import ProvisionError, TornStateError
from admitperf.provision.processes import Process
from admitperf.provision.state import State


@dataclass(frozen=True, slots=True)
class Downed:
    """What was done.

    Attributes:
        provider: whose engine it was; None = nothing is known to have been up.
        ended: pids that were running.
        left: pids that could not be ended; the state file stays then.
        costs: what may still cost money, and what else to look at, a sentence each.
    """

    provider: str | None
    ended: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    costs: tuple[str, ...] = ()


def down(path: Path, grace_s: float = processes.GRACE_S) -> Downed:
    """Ends everything that was started, and forgets it; twice is no fault.

    Args:
        path: the state file; one that is gone or torn is no obstacle.
        grace_s: what an engine has to end by itself.

    Raises:
        ProvisionError: the file is not ours and nothing was started for it, or a rented
            machine may still run.
    """
    try:
        was = state.read(path)
    except TornStateError:
        ended, left = _ended(path, None, grace_s)
        torn = "The state file was torn: see `sky status` for what it may have named."
        return _forgotten(path, Downed("an engine", ended, left, (torn,)))
    except ProvisionError as error:
        ended, left = _ended(path, None, grace_s)
        if not ended and not left:
            raise
        kept = (f"The file stays as it is. {error}",)
        return Downed("an engine", ended, left, kept)
    ended, left = _ended(path, was, grace_s)
    if was is None:
        return Downed(None, ended, left)
    if was.cluster is not None:
        _give_back(was.cluster)
    return _forgotten(path, Downed(was.provider, ended, left, _costs(was)))


def _give_back(cluster: str) -> None:
    try:
        cloud.Sky().down(cluster)
    except ProvisionError as error:
        cost = f"cluster {cluster} may still run and cost money: `sky down {cluster}`"
        raise ProvisionError(f"{error}; {cost}") from None


def _ended(
    path: Path, was: State | None, grace_s: float
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    running = state.running(path, was)
    known = was.processes if was else ()
    left = _pids(processes.end(known, state.mark(path), grace_s))
    return tuple(pid for pid in _pids(running) if pid not in left), left


def _pids(found: Sequence[Process]) -> tuple[int, ...]:
    return tuple(one.pid for one in found)


def _forgotten(path: Path, done: Downed) -> Downed:
    """The file goes with the last of what it names."""
    if not done.left:
        state.forget(path)
    return done


def _costs(was: State) -> tuple[str, ...]:
    if was.provider == "url":
        return (f"{was.url} was not started by us: it runs on, and may cost money.",)
    if was.cluster is not None:
        seen = "see that `sky status` does not list it, nor your cloud's console"
        return (f"Cluster {was.cluster} was given back; {seen}.",)
    if was.provider == "sim":
        return ()
    return ("If this machine is rented, it goes on to cost money.",)
