"""A vLLM on a rented GPU, through SkyPilot: the task as YAML, and its launch."""

import json
import re
import shlex
from importlib import import_module
from typing import Any

from admitperf.provision.engines import MODEL
from admitperf.provision.fault import ProvisionError
from admitperf.provision.wish import Wish

VLLM = "0.32.0"
"""The release whose metrics our tables were made from."""

KEY = "VLLM_API_KEY"
"""Where vLLM looks for the token it asks its callers for."""

_GPU = re.compile(r"[A-Za-z][\w.-]*(?::([1-9][0-9]?))?")
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?")
_BIN = "~/vllm/bin"


def served(wish: Wish) -> str:
    """The model, by the name it is served under."""
    return wish.model or MODEL


def rendered(wish: Wish) -> str:
    """The task as YAML, for `sky launch` too. It holds no secret.

    Raises:
        ProvisionError: the port, the GPU or the cluster is none that SkyPilot takes.
    """
    count = _checked(wish)
    serve = ["vllm", "serve", served(wish), "--host", "0.0.0.0"]  # noqa: S104  behind the token
    serve += ["--port", str(wish.port), "--enable-prompt-tokens-details"]
    serve += ["--tensor-parallel-size", str(count)] if count > 1 else []
    command = f"{_BIN}/{shlex.join([*serve, *wish.more])}"
    return _TASK.format(
        name=_quoted(wish.cluster),
        gpu=_quoted(wish.gpu),
        port=wish.port,
        minutes=wish.ends_after_min,
        key=KEY,
        vllm=VLLM,
        bin=_BIN,
        command=command.replace("\n", " "),
    )


_TASK = """\
# A vLLM to benchmark; rendered by `admitperf infra up --provider skypilot`.
# By hand: sky launch -c CLUSTER --secret {key}=... FILE; ended with sky down CLUSTER
name: {name}
resources:
  accelerators: {gpu}
  ports: [{port}]
  # It ends itself so long after the launch, whatever runs and whoever has forgotten it.
  autostop:
    idle_minutes: {minutes}
    down: true
    wait_for: none
# The port is open to everyone: requests need this token, the page of metrics does not.
secrets:
  {key}: null
setup: |
  python3 -m pip install -q uv
  test -x {bin}/vllm || python3 -m uv venv -q --python 3.12 ~/vllm
  python3 -m uv pip install -q --python {bin}/python vllm=={vllm}
run: |
  {command}
"""


def _quoted(text: str) -> str:
    return json.dumps(text)  # what is JSON is YAML


def _checked(wish: Wish) -> int:
    """How many GPUs, when all names are well formed."""
    if wish.port == 0:
        raise ProvisionError("--port 0: a rented machine opens a port that is named")
    gpu = _GPU.fullmatch(wish.gpu)
    if gpu is None:
        raise ProvisionError(f"--gpu {wish.gpu}: write NAME or NAME:COUNT, as A10:1")
    if _NAME.fullmatch(wish.cluster) is None:
        what = "small letters, digits and dashes, a letter first, 40 at most"
        raise ProvisionError(f"--cluster {wish.cluster}: a name is {what}")
    return int(gpu[1] or 1)


class Sky:
    """SkyPilot, as far as it is needed.

    Raises:
        ProvisionError: it is not installed.
    """

    def __init__(self) -> None:
        try:
            self._sky: Any = import_module("sky")
        except ImportError:
            fix = "pip install 'skypilot[aws]', or of another cloud, then `sky check`"
            raise ProvisionError(f"SkyPilot is not installed here; {fix}") from None

    def launch(self, task: str, cluster: str, token: str) -> None:
        """Rents the machine and starts the task on it; what it says is shown.

        Raises:
            ProvisionError: it failed; the cluster may exist all the same.
        """
        try:
            made = self._sky.Task.from_yaml_str(task.replace(f"  {KEY}: null", _EMPTY))
            made.update_secrets({KEY: token})
            self._sky.stream_and_get(self._sky.launch(made, cluster_name=cluster))
        except Exception as error:  # noqa: BLE001  whatever a cloud says
            raise _failed("launched", cluster, error, token) from None

    def address(self, cluster: str, port: int) -> str:
        """Where the port is reached from here.

        Raises:
            ProvisionError: it does not say.
        """
        try:
            found = self._sky.get(self._sky.endpoints(cluster, port))
            told = str({str(key): one for key, one in found.items()}[str(port)])
        except Exception as error:  # noqa: BLE001  whatever a cloud says
            raise _failed("reached", cluster, error) from None
        return told if "://" in told else f"http://{told}"

    def down(self, cluster: str) -> None:
        """Gives the machine back; one that is gone already is no fault.

        Raises:
            ProvisionError: it may still run.
        """
        try:
            self._sky.stream_and_get(self._sky.down(cluster))
        except Exception as error:  # noqa: BLE001  whatever a cloud says
            if type(error).__name__ != "ClusterDoesNotExist":
                raise _failed("ended", cluster, error) from None


_EMPTY = f'  {KEY}: ""'  # one without a value is asked for on a terminal


def _failed(
    done: str, cluster: str, error: Exception, token: str | None = None
) -> ProvisionError:
    said = " ".join(str(error).split()) or type(error).__name__
    if token:
        said = said.replace(token, "***")
    return ProvisionError(f"cluster {cluster} could not be {done}: {said}")
