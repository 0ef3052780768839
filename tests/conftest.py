"""What every test may ask for: shared inputs, our own copies, golden files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from admitperf.core import notice

ROOT = Path(__file__).resolve().parent.parent
collect_ignore = ["data"]
GOLDEN = ROOT / "tests" / "golden"


def pytest_addoption(parser):
    """Add `--update`, which rewrites golden files instead of comparing them."""
    parser.addoption("--update", action="store_true", help="rewrite the golden files")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared inputs; a test without them is skipped, and in CI failed."""
    folder = Path(os.environ.get("ADMITPERF_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        missing = "the shared inputs are absent; point ADMITPERF_SHARED at them"
        if os.environ.get("CI"):
            pytest.fail(f"in CI nothing is left out: {missing}")
        pytest.skip(missing)
    return folder


@pytest.fixture(scope="session")
def data() -> Path:
    """Our own copy of the inputs, there in every checkout."""
    return ROOT / "tests" / "data"


@pytest.fixture
def golden(request) -> Callable[[str, str], None]:
    """Compare a text with `tests/golden/<name>`, or rewrite it under `--update`."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if not path.is_file():
            pytest.fail(f"no tests/golden/{name} yet: run `make golden`, read it")
        assert text == path.read_text(encoding="utf-8"), (
            f"tests/golden/{name} differs; `make golden` rewrites it"
        )

    return compare


@pytest.fixture(autouse=True)
def _notices_at_once(request, monkeypatch):
    """In tests a notice is said where it arises, so that `caplog` can hear it."""
    if "own_voice" not in request.keywords:
        monkeypatch.setattr(notice, "hand_over", notice.speak)
