"""Field case s-ui-02, the gateway's half."""

import socket
import subprocess

from tests.gateway.conformance.door import TOOL, environment


def test_s_ui_02_a_taken_port_is_one_line_and_no_address(engine, tmp_path):
    """The second start fails at once, names the port, and prints no address."""
    stub = engine()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            [*TOOL, "gateway", "--upstream", stub.url, "--policy", "no_admission",
             "--listen", f"127.0.0.1:{port}"],
            cwd=tmp_path, env=environment(), capture_output=True, text=True,
            timeout=30, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert f"http://127.0.0.1:{port}" not in said
    (line,) = [one for one in done.stderr.splitlines() if str(port) in one]
    assert "in use" in line
