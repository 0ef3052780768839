"""The commands a newcomer and a machine type."""

import os
import subprocess

TARGETS = {
    "help", "setup", "demo", "test", "lint", "types", "docs", "bench", "golden", "ci",
    "test-engines", "test-vllm", "test-ray", "bench-demo", "bench-sessions",
    "bench-sessions-evidence", "bench-vllm", "bench-vllm-sessions", "screenshots",
}  # fmt: skip


def test_make_alone_lists_every_target(root):
    """The Makefile lists itself, each target with what it does."""
    ran = subprocess.run(
        ["make", "--no-print-directory"], cwd=root, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    listed = {line.split()[0]: line.split()[1:] for line in ran.stdout.splitlines()}
    assert set(listed) == TARGETS
    assert all(listed.values())


def test_ci_runs_what_a_developer_runs(root):
    """CI has no steps of its own: it calls `make ci`, which calls `make test`."""
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").rstrip().endswith("make ci")
    recipe = (root / "Makefile").read_text(encoding="utf-8").split("\nci:")[1]
    assert "$(MAKE) --no-print-directory test\n" in recipe + "\n"


def test_an_old_python_is_told_so_in_one_line(root, tmp_path):
    """With a Python that is too old, `make setup` says which one it needs."""
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    ran = subprocess.run(
        ["make", "setup", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, *_ = ran.stderr.splitlines()
    assert ran.returncode == 2
    assert first.startswith("AdmitPerf needs Python 3.11 or newer")
