"""Reads a recorded run, whatever wrote it."""

from dataclasses import replace
from pathlib import Path

from admitperf.core.errors import LogError
from admitperf.simulator.fit import bench_file, load_file, log_file
from admitperf.simulator.fit.lines import objects, parsed, text_of
from admitperf.simulator.fit.marks import simulated
from admitperf.simulator.fit.recorded import Recorded
from admitperf.simulator.fit.vetted import Fields

_WHAT = (
    "neither a load run (lines with type), nor a decision log (lines with k), nor what"
    " `vllm bench serve --save-result --save-detailed` writes"
)


def read(path: str | Path) -> Recorded:
    """A run from its file: of a load generator, of a policy's log, of vLLM's bench.

    Raises:
        LogError: it cannot be read, or is none of these.
    """
    place = Path(path)
    text = text_of(place)
    if (whole := _whole(text)) is not None:
        if "input_lens" in whole or "request_throughput" in whole:
            made = bench_file.recorded(place, whole)
            return replace(made, simulated=simulated([whole]))
        if "type" not in whole and "k" not in whole:
            raise LogError(f"{place}: is {_WHAT}")
    lines = list(objects(place, text))
    if not lines:
        raise LogError(f"{place}: is empty")
    first = lines[0][1]
    if "k" not in first and "type" not in first:
        raise LogError(f"{place}: is {_WHAT}")
    recorded = log_file.recorded if "k" in first else load_file.recorded
    made = recorded(place, lines)
    return replace(made, simulated=simulated(fields for _, fields in lines))


def _whole(text: str) -> Fields | None:
    """The file as one object; None when it is several lines, or no JSON."""
    try:
        found = parsed(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
