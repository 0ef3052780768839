"""How an engine is started on this machine."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from admitperf.provision.fault import ProvisionError
from admitperf.provision.wish import Kind, Wish

HOST = "127.0.0.1"
MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
"""What a vLLM serves when nothing is said. Plain choice: small, and free to load."""

VENV, OWN_MODEL = "ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL"
"""Environment variables that name a vLLM elsewhere, and the model it should serve."""

_TOOL = "from admitperf.cli import main; main()"
_CHECKOUT = Path("infra/llamacpp/serve.sh")
_BUILT_THEN_SERVED = 'sh "$0/build.sh" && exec sh "$0/serve.sh" "$@"'
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True, slots=True)
class Start:
    """One program to start.

    Attributes:
        command: with its arguments.
        model: the name it will serve under.
        environment: on top of ours.
    """

    command: tuple[str, ...]
    model: str
    environment: Mapping[str, str] = field(default_factory=dict)


def default_kind() -> Kind:
    """The kind where none is named: a real vLLM where there is one.

    Raises:
        ProvisionError: there is none.
    """
    if _vllm() is None:
        what = "vLLM is not installed here, so name an engine: --provider sim is"
        raise ProvisionError(f"{what} simulated and needs neither GPU nor model")
    return "vllm"


def start_of(wish: Wish, port: int) -> Start:
    """How what is wished is started on that port.

    Raises:
        ProvisionError: something that it needs is missing.
    """
    kinds = {"vllm": _start_vllm, "llamacpp": _start_llamacpp, "sim": _start_sim}
    return kinds[wish.kind](wish, port)


def free(port: int) -> int:
    """The port, seen to be free; of 0 one that is.

    Raises:
        ProvisionError: somebody listens there, so its answers would not be ours.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            why = (error.strerror or "cannot be used").lower()
            fix = "name another with --port, or 0 for any"
            raise ProvisionError(f"{HOST}:{port}: {why}; {fix}") from None
        found: int = probe.getsockname()[1]
        return found


def _start_sim(wish: Wish, port: int) -> Start:
    model = wish.model or "simulated"
    tool = (sys.executable, "-P", "-c", _TOOL, "sim", "serve")
    options = ("--profile", wish.profile, "--model", model, *_at(port))
    # An engine that is taken down does not wait for its callers.
    return Start((*tool, *options, "--shutdown", "cut", *wish.more), model)


def _start_vllm(wish: Wish, port: int) -> Start:
    program = _vllm()
    if program is None:
        fix = f"pip install vllm, or name its virtual environment in {VENV}"
        raise ProvisionError(f"vLLM is not installed here; {fix}")
    model = wish.model or os.environ.get(OWN_MODEL) or MODEL
    name = Path(model).resolve().name if Path(model).is_dir() else model
    options = ("--served-model-name", name, *_at(port))
    # How much of each prompt was in the prefix cache is part of a benchmark's cost.
    told = ("--enable-prompt-tokens-details", *wish.more)
    return Start((*program, "serve", model, *options, *told), name, _QUIET)


def _at(port: int) -> tuple[str, ...]:
    return "--host", HOST, "--port", str(port)


def _vllm() -> tuple[str, ...] | None:
    """The vLLM of the named environment, else of this one; None = there is none."""
    if elsewhere := os.environ.get(VENV):
        program = Path(elsewhere, "bin/vllm")
        return (str(program.absolute()),) if program.exists() else None
    if find_spec("vllm") is None:
        return None
    return sys.executable, "-P", "-m", "vllm.entrypoints.cli.main"


def _start_llamacpp(wish: Wish, port: int) -> Start:
    if wish.model is not None:
        return _start_gguf(wish, wish.model, port)
    scripts = next((one for one in _checkouts() if (one / "serve.sh").exists()), None)
    if scripts is None:
        fix = "name a model with --model FILE.gguf, or run it in a checkout"
        raise ProvisionError(f"there is no {_CHECKOUT} here; {fix}")
    # The script puts the server's output into a file: ours, which is its own already.
    served = (str(scripts), str(port), "/dev/stdout", *wish.more)
    python = {"PYTHON": os.environ.get("PYTHON", sys.executable)}
    return Start(("sh", "-c", _BUILT_THEN_SERVED, *served), "tiny", python)


def _start_gguf(wish: Wish, model: str, port: int) -> Start:
    server = shutil.which("llama-server")
    if server is None:
        raise ProvisionError("llama-server is not on the PATH; install llama.cpp")
    if not Path(model).is_file():
        raise ProvisionError(f"{model}: no such file; a model is a .gguf file")
    name = Path(model).stem
    options = ("-m", model, "-a", name, *_at(port), "--metrics", *wish.more)
    return Start((server, *options), name)


def _checkouts() -> Iterator[Path]:
    """Where our scripts may be: from here upwards, and where this package is."""
    here = Path.cwd()
    for root in (here, *here.parents, Path(__file__).resolve().parents[3]):
        yield (root / _CHECKOUT).parent
