"""How each kind of engine is started: the whole command line."""

import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from admitperf.cli import main
from admitperf.provision import engines


@pytest.fixture
def dry():
    """What `up --dry-run` prints, or the line it refuses with."""

    def _dry(*words):
        ran = CliRunner().invoke(main, ["infra", "up", "--dry-run", *words])
        assert ran.exit_code in (0, 2), ran.output
        return ran.stdout if ran.exit_code == 0 else ran.stderr.splitlines()[-1]

    return _dry


@pytest.fixture
def vllm(tmp_path, monkeypatch):
    """The program of a virtual environment that is named as vLLM's."""
    program = tmp_path / "venv" / "bin" / "vllm"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("ADMITPERF_VLLM_VENV", "venv")
    return str(program)


@pytest.fixture
def no_vllm(monkeypatch):
    """A machine on which vLLM cannot be imported."""
    monkeypatch.setattr(engines, "find_spec", lambda _: None)


def test_without_a_vllm_the_default_names_the_simulated_engine(dry, no_vllm):
    """In one line."""
    said = dry()
    assert said.startswith("Error: vLLM is not installed here")
    assert "--provider sim" in said


def test_asked_for_a_vllm_that_is_not_there_it_says_how_to_get_one(dry, no_vllm):
    """Also of an environment that has none."""
    assert "pip install vllm" in dry("--provider", "vllm")


def test_an_environment_without_vllm_is_none(dry, no_vllm, monkeypatch, tmp_path):
    """Though it is named."""
    monkeypatch.setenv("ADMITPERF_VLLM_VENV", str(tmp_path))
    assert "ADMITPERF_VLLM_VENV" in dry("--provider", "vllm")


def test_the_vllm_of_this_environment_is_run_by_this_python(dry, monkeypatch):
    """And it is the default."""
    monkeypatch.setattr(engines, "find_spec", lambda name: name == "vllm")
    assert shlex.split(dry()) == [
        sys.executable, "-P", "-m", "vllm.entrypoints.cli.main",
        "serve", "Qwen/Qwen2.5-0.5B-Instruct",
        "--served-model-name", "Qwen/Qwen2.5-0.5B-Instruct",
        "--host", "127.0.0.1", "--port", "8000", "--enable-prompt-tokens-details",
    ]  # fmt: skip


def test_a_vllm_elsewhere_serves_a_folder_under_its_name(dry, vllm, tmp_path):
    """What stands behind -- comes last, so that it has the last word."""
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    words = ("--model", "models/tiny", "--port", "81", "--", "--port", "82", "--seed=1")
    assert shlex.split(dry(*words)) == [
        vllm, "serve", "models/tiny", "--served-model-name", "tiny",
        "--host", "127.0.0.1", "--port", "81", "--enable-prompt-tokens-details",
        "--port", "82", "--seed=1",
    ]  # fmt: skip


def test_the_model_may_be_named_in_the_environment(dry, vllm, monkeypatch):
    """For a checkout that has built one; an option comes first."""
    monkeypatch.setenv("ADMITPERF_VLLM_MODEL", "some/model")
    assert " serve some/model " in dry()
    assert " serve other/model " in dry("--model", "other/model")


def test_a_simulated_engine_is_sim_serve_in_short(dry):
    """It ends when it is told, whoever is being served."""
    found = shlex.split(
        dry("--provider", "sim", "--profile", "p.json", "--", "--seed=7")
    )
    assert found[:3] == [sys.executable, "-P", "-c"]
    assert found[4:] == [
        "sim", "serve", "--profile", "p.json", "--model", "simulated",
        "--host", "127.0.0.1", "--port", "8000", "--shutdown", "cut", "--seed=7",
    ]  # fmt: skip


def test_a_llamacpp_without_a_model_is_the_one_of_the_checkout(dry, root):
    """Built first where it is not; from any folder, since the checkout is installed."""
    found = shlex.split(dry("--provider", "llamacpp", "--", "-np", "2"))
    assert found[:2] == ["sh", "-c"]
    assert "build.sh" in found[2]
    assert found[3:] == [
        str(root / "infra/llamacpp"),
        "8000",
        "/dev/stdout",
        "-np",
        "2",
    ]


def test_a_llamacpp_without_a_checkout_says_what_to_do(dry, monkeypatch):
    """In one line."""
    monkeypatch.setattr(engines, "_CHECKOUT", Path("no/such/serve.sh"))
    assert "--model FILE.gguf" in dry("--provider", "llamacpp")


def test_a_llamacpp_with_a_model_is_the_one_on_the_path(dry, monkeypatch, tmp_path):
    """With its metrics on, which it has off."""
    server = tmp_path / "llama-server"
    server.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.gguf").touch()
    assert shlex.split(dry("--provider", "llamacpp", "--model", "a.gguf")) == [
        str(server), "-m", "a.gguf", "-a", "a",
        "--host", "127.0.0.1", "--port", "8000", "--metrics",
    ]  # fmt: skip
    assert "b.gguf: no such file" in dry("--provider", "llamacpp", "--model", "b.gguf")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "not on the PATH" in dry("--provider", "llamacpp", "--model", "a.gguf")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--provider", "sim", "--url", "h:1"), "--url does not go with sim"),
        (("--provider", "vllm", "--profile", "p"), "--profile does not go with vllm"),
        (("--url", "h:1", "--port", "0"), "--port does not go with url"),
        (("--url", "h:1", "--", "-x"), "what is behind -- does not go with url"),
        (("--url", "h:1", "--gpu", "A10"), "--gpu does not go with url"),
        (("--provider", "sim", "--ends-after", "1h"), "--ends-after does not go"),
        (("--provider", "url"), "--provider url needs --url HOST:PORT"),
        (("--provider", "skypilot", "--port", "0"), "--port 0: a rented machine"),
        (("--provider", "skypilot", "--gpu", "a b"), "--gpu a b: write NAME"),
        (("--provider", "skypilot", "--cluster", "A_"), "--cluster A_: a name is"),
        (("--wait", "soon"), "'soon' is no duration"),
    ],
)
def test_what_does_not_go_together_is_said(dry, words, said):
    """Wrong use is 2, and nothing is started."""
    assert said in dry(*words)


def test_a_free_port_is_found_and_is_free():
    """0 is any, and one after the other may have it."""
    port = engines.free(0)
    assert engines.free(port) == port
