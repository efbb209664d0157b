"""`apply-service serve` as a process of its own, with a real model: start, signals, bad starts."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from serve_process import ServeProcess, serve_process, wait_until_ready

from apply_service.cli.main import main
from apply_service.http.guard.keys.key_file import has_key_form
from apply_service.http.guard.keys.key_ring import RELOAD_S

EDIT = {
    "original": "".join(f"line_{number} = {number}\n" for number in range(40)),
    "update": "# ... existing code ...\nline_39 = 40\n",
}


@pytest.fixture
def flags(tiny_model_dir: Path) -> list[str]:
    return ["--model", str(tiny_model_dir), "--profile", "embedded", "--port", "0"]


def test_ready_second_server_and_sigterm(flags: list[str]) -> None:
    with serve_process(*flags, "--drain-s", "5") as (server, url):
        early = httpx.get(f"{url}/health/ready", timeout=30)
        assert early.status_code == 200
        server.wait_for("ready: model")
        assert httpx.get(f"{url}/health/ready").json() == {"status": "ready", "model": "ready"}
        response = httpx.post(
            f"{url}/v1/apply",
            json={**EDIT, "checks": "off", "use_model": "always", "sampling": {"max_tokens": 8}},
            timeout=30,
        )
        assert response.status_code == 200, response.text
        assert response.json()["usage"]["completion_tokens"] == 8

        second = ServeProcess(*flags[:-1], url.rpartition(":")[2])
        assert second.end() == 1
        assert "Address already in use" in second.log[-1]
        assert "--port" in second.log[-1]

        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        assert "Traceback" not in "".join(server.log)


def test_ctrl_c_is_130(flags: list[str]) -> None:
    with serve_process(*flags) as (server, _):
        server.wait_for("ready: model")
        server.process.send_signal(signal.SIGINT)
        assert server.end() == 130
        assert "Traceback" not in "".join(server.log)


def test_killed_in_mid_request_leaves_the_file(
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "lines.py"
    file.write_text(EDIT["original"])
    (tmp_path / "update.py").write_text(EDIT["update"])
    with serve_process(*flags) as (server, url):
        server.wait_for("ready: model")
        monkeypatch.setenv("APPLY_SERVICE_URL", url)
        killer = threading.Thread(target=_kill_when_busy, args=(server, url))
        killer.start()
        arguments = ["apply", str(file), "--update", str(tmp_path / "update.py"), "--write"]
        arguments += ["--use-model", "always"]
        assert main([*arguments, "--speculation", "off", "--checks", "off"]) == 1
        killer.join()
    assert "gave no complete answer" in capfd.readouterr().err
    assert file.read_text() == EDIT["original"]


def _kill_when_busy(server: ServeProcess, url: str) -> None:
    while "apply_num_requests_running 1.0" not in httpx.get(f"{url}/metrics").text:
        time.sleep(0.01)
    server.process.kill()


@pytest.mark.parametrize("missing", ["no/such/folder", "tokenizer.json"])
def test_a_model_that_is_not_there_ends_the_server_before_it_listens(
    tiny_model_dir: Path, tmp_path: Path, missing: str
) -> None:
    model_dir = tmp_path / missing
    if missing == "tokenizer.json":
        model_dir = tmp_path / "model"
        shutil.copytree(tiny_model_dir, model_dir, ignore=shutil.ignore_patterns(missing))
    server = ServeProcess("--model", str(model_dir), "--port", "0")
    assert server.end() == 1
    log = "".join(server.log)
    assert log.startswith("apply-service: ")
    assert missing in log
    assert "listening" not in log
    assert "Traceback" not in log


def test_damaged_weights_fail_only_the_edits_that_need_them(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    model_dir = tmp_path / "model"
    shutil.copytree(tiny_model_dir, model_dir)
    weights = model_dir / "model.safetensors"
    weights.chmod(0o644)
    weights.write_bytes(weights.read_bytes()[:1000])
    flags = ["--model", str(model_dir), "--profile", "embedded", "--port", "0"]
    with serve_process(*flags) as (server, url):
        server.wait_for("the model cannot be served: .*model")
        asked = httpx.post(f"{url}/v1/apply", json={**EDIT, "use_model": "always"}, timeout=30)
        assert (asked.status_code, asked.json()["code"]) == (503, "model-failed")
        merged = httpx.post(f"{url}/v1/apply", json={**EDIT, "use_model": "never"}, timeout=30)
        assert merged.json()["merged"].endswith("line_39 = 40\n")
        assert httpx.get(f"{url}/health/ready").json()["code"] == "model-failed"
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0


def test_a_port_in_use_is_said_before_anything_is_loaded(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert main(["serve", "--port", str(port), "--model", "no/such/model"]) == 1
    assert f"127.0.0.1:{port}: Address already in use" in capfd.readouterr().err


def test_up_shows_how_to_connect_and_serves(tiny_model_dir: Path, tmp_path: Path) -> None:
    flags = ["--model", str(tiny_model_dir), "--profile", "embedded", "--port", "0"]
    command = [sys.executable, "-m", "apply_service", "up", *flags]
    with subprocess.Popen(
        [*command, "--keys-file", str(tmp_path / "keys.json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or not lines[-1].startswith("It asks for no key"):
                lines.append(process.stdout.readline())
                assert lines[-1], "the command has ended"
            url = lines[0].split()[3].rstrip(";")
            assert f"base_url {url}/v1" in "".join(lines)
            wait_until_ready(url)
        finally:
            process.terminate()
        assert process.wait(60) == 0


def test_servers_of_one_user_do_not_lock_each_other_out(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own_file = tmp_path / "own.json"
    with serve_process(*flags) as (server, url):
        exposed = ServeProcess(*flags, "--host", "0.0.0.0")
        assert exposed.end() == 1
        assert "key create --name NAME" in exposed.log[-1]
        assert "--host 127.0.0.1" in exposed.log[-1]
        assert not (tmp_path / "apply-service").exists()
        assert main(["key", "create", "--name", "other"]) == 0
        time.sleep(2 * RELOAD_S)
        assert httpx.post(f"{url}/v1/apply", json=EDIT, timeout=30).status_code == 200
        server.wait_for("stays open until it is restarted")
    own = ["--host", "0.0.0.0", "--keys-file", str(own_file), "--create-key"]
    with serve_process(*flags, *own) as (server, url):
        (key,) = (line.strip() for line in server.log if has_key_form(line.strip()))
    with serve_process(*flags, *own) as (server, url):
        assert not any(has_key_form(line.strip()) for line in server.log)
        headers = {"Authorization": f"Bearer {key}"}
        url = url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.post(f"{url}/v1/apply", json=EDIT, timeout=30).status_code == 401
        own_file.unlink()
        time.sleep(2 * RELOAD_S)
        answer = httpx.post(f"{url}/v1/apply", json=EDIT, headers=headers, timeout=30)
        assert answer.status_code == 200
        server.wait_for("Put it back, or make new keys with")
