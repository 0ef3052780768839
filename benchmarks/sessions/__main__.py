"""Evidence about whole sessions: PROTOCOL.md says what is run, and why.

    python -m benchmarks.sessions try --arm none thunder --engine kv --blocks 2
    python -m benchmarks.sessions screen [--arms protect shed] [--write]
    python -m benchmarks.sessions final [--only final shift extra] [--fresh]
    python -m benchmarks.sessions again [--blocks 1 2]
    python -m benchmarks.sessions cost
    python -m benchmarks.sessions page

SIMULATED: engines in virtual time.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict

from benchmarks.sessions import again, explore, frozen, page, stages
from benchmarks.sessions.arms import GRIDS
from benchmarks.sessions.cells import CLIENTS, ENGINES, LOAD, Cell
from benchmarks.sessions.evidence import EvidenceError
from benchmarks.sessions.runs import CPU, RECORDS

FINAL = ("final", "shift", "extra")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions")
    commands = parser.add_subparsers(required=True)
    _try(
        commands.add_parser("try", help="parameters side by side, on the training pool")
    )
    _screen(commands.add_parser("screen", help="every grid, on the training pool"))
    _final(commands.add_parser("final", help="all arms, on the other pool"))
    _again(commands.add_parser("again", help="kept runs with the policies of now"))
    cost = commands.add_parser("cost", help="processor time of all runs so far")
    cost.set_defaults(run=_cost)
    paper = commands.add_parser("page", help="docs/results/sessions.md from records")
    paper.set_defaults(run=_page)
    told = parser.parse_args()
    told.run(told)


def _try(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_tried)
    parser.add_argument(
        "--arm",
        nargs="+",
        required=True,
        metavar="NAME",
        help="an arm of PROTOCOL.md with its grid, or a policy",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="a name that comes twice is swept",
    )
    parser.add_argument("--engine", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--client", nargs="+", default=list(CLIENTS))
    parser.add_argument("--load", nargs="+", default=[LOAD], type=float)
    parser.add_argument("--blocks", default=2, type=int)
    parser.add_argument("--mix", default="train", choices=("train",))
    parser.add_argument("--gates", action="store_true", help="how often each held")
    parser.add_argument("--fresh", action="store_true", help="believe nothing kept")


def _tried(told: argparse.Namespace) -> None:
    cells = [
        Cell(told.mix, engine, client, load)
        for engine in told.engine
        for client in told.client
        for load in told.load
    ]
    asked = explore.rows(told.arm, told.set)
    made = explore.tried(asked, cells, told.blocks, fresh=told.fresh)
    print(explore.table(asked, cells, made))
    if told.gates:
        print(explore.gates(made))


def _screen(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_screened)
    parser.add_argument("--arms", nargs="+", default=list(GRIDS), choices=GRIDS)
    parser.add_argument("--fresh", action="store_true", help="run these arms again")
    parser.add_argument("--write", action="store_true", help="freeze what is chosen")


def _screened(told: argparse.Namespace) -> None:
    store = stages.Store(RECORDS / "screen.jsonl.gz")
    if told.fresh:
        store.forget(told.arms)
    whole = stages.made(stages.screen_jobs(told.arms), store, by_set=True)
    print(stages.regrets(store.records))
    if told.write:
        frozen.write(*stages.choose(store.records))
    sys.exit(not whole)


def _final(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_finished)
    parser.add_argument("--only", nargs="+", default=FINAL, choices=FINAL)
    parser.add_argument("--fresh", action="store_true", help="move old records away")


def _finished(told: argparse.Namespace) -> None:
    whole = True
    for stage in told.only:
        path = RECORDS / f"{stage}.jsonl.gz"
        if told.fresh:
            stages.move_away(path)
        store = stages.Store(path)
        whole &= stages.made(stages.final_jobs(stage), store, by_set=False)
    page.save()
    sys.exit(not whole)


def _again(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_renewed)
    parser.add_argument("--arms", nargs="+", default=again.ARMS, choices=again.ARMS)
    parser.add_argument("--blocks", nargs="+", default=[1, 2], type=int)


def _renewed(told: argparse.Namespace) -> None:
    for line in again.told(told.arms, told.blocks):
        print(line)


def _page(_told: argparse.Namespace) -> None:
    try:
        print(page.write())
    except EvidenceError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def _cost(_told: argparse.Namespace) -> None:
    lines = [json.loads(line) for line in CPU.read_text().splitlines()]
    took: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for name in ("+".join(line["stages"]), "all"):
            took[name].update({of: line[of] for of in ("runs", "cpu_s")})
    for name, spent in sorted(took.items(), key=lambda one: one[1]["cpu_s"]):
        hours = spent["cpu_s"] / 3600
        print(f"{name:12s} {spent['runs']:6d} runs {hours:6.2f} core-hours")


if __name__ == "__main__":
    main()
