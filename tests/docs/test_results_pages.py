"""The pages of results: what they say of hardware, and what they rest on."""

import importlib.util
import json
import re
import shutil
from statistics import median

import pytest
from tests.bench.design import experiments

from admitperf.bench.design.comparison import compare
from admitperf.bench.design.results import read_experiment
from admitperf.bench.pages import middles

NOT_ON_A_GPU = "On GPU hardware: not yet measured here."
VLLM = "2026-11-30-vllm-0.32-cpu"


@pytest.fixture(scope="module")
def folder(root):
    """Where they lie."""
    return root / "docs" / "results"


@pytest.fixture
def script(root, monkeypatch):
    """`benchmarks/bench_vllm.py`, as a module."""
    monkeypatch.syspath_prepend(root / "benchmarks")
    path = root / "benchmarks" / "bench_vllm.py"
    spec = importlib.util.spec_from_file_location("bench_vllm", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def measured_on(page):
    """The hardware of a page's numbers; None = simulated, or of no engine at all."""
    if "**SIMULATED**" in page.read_text(encoding="utf-8") or page.stem == "gateway":
        return None
    stated = page.with_suffix("") if page.suffix == ".md" else page
    told = json.loads((stated / "experiment.json").read_text(encoding="utf-8"))
    return told["target"]["hardware"]


def test_the_readme_says_whether_a_gpu_was_measured(root, folder):
    """Not, as long as every page is simulated, or of processor cores."""
    pages = sorted(folder.glob("*.md"))
    hardware = [measured_on(page) for page in pages]
    assert len(pages) >= 3
    on_gpu = [one for one in hardware if one and not re.match(r"\d+ cores? of ", one)]
    said = NOT_ON_A_GPU in (root / "README.md").read_text(encoding="utf-8")
    assert said == (not on_gpu)


def test_every_page_is_linked_from_the_readme(root, folder):
    """None lies there unseen."""
    text = (root / "README.md").read_text(encoding="utf-8")
    for page in folder.glob("*.md"):
        assert f"(docs/results/{page.name})" in text, page.name


def test_a_tail_of_those_served_never_stands_alone(folder):
    """Wherever a page or a plot's table names one, that of those offered does too."""
    for page in folder.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        served = len(
            re.findall(r"TTFT p\d+ of those served|TTFT of those served", text)
        )
        offered = len(re.findall(r"TTFT p?\d* ?of those offered", text))
        assert served == offered, page.name
        if "offered ms" not in text:
            assert "served ms" not in text, page.name


def test_the_pages_show_more_than_the_metric(folder):
    """The table of middle runs, for the baseline too."""
    for name in ("a10-4seq.md", f"{VLLM}.md"):
        text = (folder / name).read_text(encoding="utf-8")
        section = text.split("Beside it: the middle run of ")[1].split("\n\n")[0]
        assert section.count("\n  no_admission ") == 2
        assert "offered ms  served ms" in section


def test_the_tails_on_vllms_page_are_its_summaries(folder):
    """Each arm's, of the middle of its six runs."""
    page = (folder / f"{VLLM}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`.*\| (\w+) \| (\d+) ms \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for arm, offered, served in rows:
        found = [
            json.loads(path.read_text(encoding="utf-8"))
            for path in (folder / VLLM / arm).glob("x*/summary.json")
        ]
        assert len(found) == 6
        assert all(one["ttft_offered_ms"]["infinite"] for one in found)
        p95 = median(one["ttft_served_ms"]["p95"] for one in found)
        assert (offered, served) == (middles.INFINITE, f"{p95:.0f}")


def test_that_page_says_whose_capacity_it_is(folder):
    """The arm with a server of its own was held against the first one's."""
    page = (folder / f"{VLLM}.md").read_text(encoding="utf-8")
    own = {
        path.parts[-3]
        for path in (folder / VLLM).glob("*/x*/manifest.json")
        if json.loads(path.read_text(encoding="utf-8"))["url"]
    }
    assert own == {"vllm_limit"}
    assert "`vllm_limit` is a second server" in page
    assert "SLO and the probe before each run are the first server's only" in page


def test_what_was_kept_of_it_is_judged_as_the_page_says(folder):
    """Without the logs: what they said stands in experiment.json."""
    kept = folder / VLLM
    assert not list(kept.glob("*/*/*.jsonl"))
    page = (folder / f"{VLLM}.md").read_text(encoding="utf-8")
    made = compare(read_experiment(kept))
    for one in made.arms:
        assert f"  {one.verdict.upper():<13} {one.arm}: " in page, one.headline
        assert one.verdict != "void"


def test_every_run_of_it_has_a_finding(folder):
    """By arm and place, in the words of a report."""
    told = json.loads((folder / VLLM / "experiment.json").read_text(encoding="utf-8"))
    runs = {
        "/".join(path.parts[-3:-1])
        for path in (folder / VLLM).glob("*/x*/manifest.json")
    }
    assert set(told["findings"]) == runs
    words = {name: one["word"] for name, one in told["findings"].items()}
    assert words["queue_depth/x1.5-b1"] == "LIVE"
    assert words["vllm_limit/x1.5-b1"] == words["no_admission/x1.5-b1"] == "BASELINE"


def test_findings_are_what_the_logs_say(script, tmp_path):
    """Of an experiment made before they were written down, and of one after."""
    made = experiments.made(tmp_path, ("bounded", "inert"), loads=(1.2,))
    results = read_experiment(made)
    told = json.loads(script.stated(results))
    assert told["experiment"] == "made"
    assert len(told["findings"]) == len(results.runs) == 18
    for run in results.runs:
        one = told["findings"][f"{run.arm}/{run.folder.name}"]
        assert one["word"] == run.finding
        assert one["says"] == list(run.log.finding.says)
        assert (one["refused"] > 0) == (run.arm == "bounded")
    shutil.rmtree(made / "bounded")
    (made / "experiment.json").write_text(json.dumps(told), encoding="utf-8")
    again = json.loads(script.stated(read_experiment(made)))
    assert again["findings"] == told["findings"]


def test_what_is_kept_names_no_folder_of_the_machine(folder):
    """Where it was run is nobody else's."""
    kept = sorted(folder.glob("*/experiment.json"))
    assert kept
    for path in kept:
        told = json.loads(path.read_text(encoding="utf-8"))
        assert told["config"]["root"] is None, path
