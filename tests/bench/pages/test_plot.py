"""The plot: the same bytes again, in the format asked for."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from admitperf.bench.pages.plot import PlotError, plot

pytest.importorskip("matplotlib")


def test_an_svg_repeats_byte_by_byte(verdicts, tmp_path):
    """No date, no random ids."""
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    plot(verdicts, one)
    plot(verdicts, two)
    assert one.read_bytes() == two.read_bytes()
    ET.fromstring(one.read_text(encoding="utf-8"))
    assert "dc:date" not in one.read_text(encoding="utf-8")


def test_every_arm_and_load_is_named(verdicts, tmp_path):
    """With its verdict, and that it is simulated."""
    path = tmp_path / "plot.svg"
    plot(verdicts, path)
    text = path.read_text(encoding="utf-8")
    for said in (
        "bounded: better", "inert: void", "no_admission (baseline)", "0.8x", "1.5x",
        "(SIMULATED)",
    ):  # fmt: skip
        assert f">{said}" in text or f"{said}<" in text, said


def test_an_exploratory_metric_is_marked(verdicts, tmp_path):
    """A plot travels without its page."""
    for exploratory in (True, False):
        path = tmp_path / "plot.svg"
        plot(replace(verdicts, exploratory=exploratory), path)
        text = path.read_text(encoding="utf-8")
        assert ("(EXPLORATORY)" in text) is exploratory


def test_other_numbers_give_another_plot(verdicts, tmp_path):
    """It shows what it is given."""
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    plot(verdicts, one)
    plot(replace(verdicts, curves=verdicts.curves[1:]), two)
    assert one.read_bytes() != two.read_bytes()


def test_a_png_is_a_png(verdicts, tmp_path):
    """By its first bytes; the suffix in any case."""
    path = tmp_path / "plot.PNG"
    plot(verdicts, path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plot.pdf", "ends in .svg or .png"),
        ("plot", "ends in .svg or .png"),
        ("absent/plot.svg", "no such file or directory"),
    ],
)
def test_a_plot_that_cannot_be_written_is_one_line(verdicts, tmp_path, name, said):
    """And leaves nothing behind."""
    with pytest.raises(PlotError, match=said):
        plot(verdicts, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_one_block_has_no_interval(verdicts, tmp_path):
    """A single run an arm is still drawn."""
    curves = tuple(
        replace(one, points=tuple(replace(p, n=1, interval=None) for p in one.points))
        for one in verdicts.curves
    )
    plot(replace(verdicts, curves=curves), tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").stat().st_size > 0
