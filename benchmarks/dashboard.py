"""How long the dashboard takes to show a large log, first and again: with targets.

Each row is the page of one run, shown by a Streamlit of its own in a process of its
own, from the import to the last widget; the browser's drawing is not in it. Run it on a
quiet machine; the load beside each row says how quiet it was.

    python benchmarks/dashboard.py           the table, a million decisions
    python benchmarks/dashboard.py --quick   a smaller log, for CI
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from machine import machine
from reports import write

DECISIONS = 1_000_000
FIRST_S, AGAIN_S = 12.0, 2.0
"""The issue's targets, for `DECISIONS`."""

PAGE = """
import sys
from streamlit.testing.v1 import AppTest
script = f'''
from admitperf.dashboard import log_page
from admitperf.dashboard.reading import Asked
log_page.show_page(Asked({sys.argv[1]!r}))
'''
page = AppTest.from_string(script, default_timeout=600).run()
assert not page.exception, page.exception
assert len(page.dataframe) > 5
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One look.

    `bare_s` is an empty page's: what a process and Streamlit take to start, which a
    person waits for once, before the dashboard says that it serves.
    """

    what: str
    decisions: int
    wall_s: float
    bare_s: float
    most_s: float | None
    load: float

    @property
    def shown_s(self) -> float:
        """What the look itself took."""
        return self.wall_s - self.bare_s


def look(log: Path, cache: Path) -> float:
    """Seconds of one look in a new process."""
    return _timed([sys.executable, "-W", "ignore", "-c", PAGE, str(log)], cache)


def bare(cache: Path) -> float:
    """Seconds of a page with nothing on it."""
    empty = (
        "from streamlit.testing.v1 import AppTest\n"
        "import admitperf.dashboard.log_page\n"
        "AppTest.from_string('', default_timeout=60).run()\n"
    )
    return _timed([sys.executable, "-W", "ignore", "-c", empty], cache)


def _timed(command: list[str], cache: Path) -> float:
    environment = {**os.environ, "ADMITPERF_CACHE": str(cache)}
    began = time.perf_counter()
    subprocess.run(command, check=True, env=environment, capture_output=True)
    return time.perf_counter() - began


def measured(folder: Path, decisions: int) -> list[Row]:
    """The first look and the second one."""
    log = folder / "big.jsonl"
    write(log, decisions)
    os.sync()  # else what was just written is flushed while the look is timed
    cache, full = folder / "cache", decisions == DECISIONS
    rows = []
    for what, most in (("first", FIRST_S), ("again", AGAIN_S)):
        took = look(log, cache)
        load = os.getloadavg()[0]
        row = Row(what, decisions, took, bare(cache), most if full else None, load)
        rows.append(row)
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), 20_000 if given.quick else DECISIONS)
    where = machine("streamlit", "duckdb")
    if given.json:
        print(json.dumps({"machine": where, "rows": [asdict(row) for row in rows]}))
        return
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    print("look      decisions  shown s  target  start s   load")
    for row in rows:
        target = "--" if row.most_s is None else f"{row.most_s:g}"
        missed = " MISSED" if row.most_s and row.shown_s > row.most_s else ""
        print(
            f"{row.what:8}{row.decisions:>11}{row.shown_s:>9.1f}{target:>8}"
            f"{row.bare_s:>9.1f}{row.load:>7.1f}{missed}"
        )


if __name__ == "__main__":
    main()
