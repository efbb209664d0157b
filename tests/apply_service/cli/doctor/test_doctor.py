"""`apply-service doctor` on installations that are whole, and on such as lack something."""

from __future__ import annotations

import json
import shutil
import socket
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import pytest
from redis_process import RedisProcess, find_redis_server, free_port

from apply_service.cli.doctor import machine_checks
from apply_service.cli.doctor.model_checks import check_context
from apply_service.cli.main import main
from apply_service.config import Settings
from apply_service.http.guard.keys.key_file import SCOPES, KeyFile
from apply_service.models.info import model_info
from apply_service.models.manifest import Manifest, record_files, write_manifest
from apply_service.models.store import open_store

needs_redis = pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")


class Doctor:
    """Runs the command with a tiny model and reads its report."""

    def __init__(self, model_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._flags = ["--model", str(model_dir), "--profile", "embedded", "--port", "0"]
        self._capfd = capfd
        self.code = -1

    def report(self, *flags: str) -> dict[str, Any]:
        self.code = main(["doctor", "--json", *self._flags, *flags])
        report: dict[str, Any] = json.loads(self._capfd.readouterr().out)
        return report

    def checks(self, *flags: str) -> dict[str, dict[str, Any]]:
        return {check["name"]: check for check in self.report(*flags)["checks"]}

    def text(self, *flags: str) -> str:
        self.code = main(["doctor", *self._flags, *flags])
        return self._capfd.readouterr().out


@pytest.fixture
def doctor(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Doctor:
    monkeypatch.setattr(machine_checks, "available_memory_bytes", lambda: 64 << 30)
    return Doctor(tiny_model_dir, capfd)


def test_how_rows_are_computed_is_told_and_forced_by_the_environment(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = doctor.checks("--threads", "1")["rows"]
    assert rows["facts"]["instruction_set"] in rows["text"]
    monkeypatch.setenv("APPLY_SERVICE_ROW_GROUPING", "single")
    forced = doctor.checks("--threads", "1")["rows"]
    assert forced["status"] == "warning"
    assert (forced["facts"]["linear"], forced["facts"]["attention"]) == ("single", "single")
    assert "nothing faster than single is allowed" in forced["text"]
    assert doctor.code == 0


def test_a_whole_installation(doctor: Doctor) -> None:
    checks = doctor.checks("--threads", "1")
    assert doctor.code == 0
    assert not [check for check in checks.values() if check["status"] == "error"]
    assert checks["packages"]["facts"]["versions"]["torch"] == version("torch")
    assert checks["merge"]["status"] == "ok"
    # A random model merges at random, and its verdict says so.
    assert checks["model merge"]["facts"]["load_s"] > 0
    assert checks["context"]["facts"]["max_tokens"] == 4096


def test_the_report_for_people(doctor: Doctor) -> None:
    shown = doctor.text("--quick", "--max-running", "7")
    assert doctor.code == 0
    lines = shown.splitlines()
    assert lines[0].startswith("ok       python ")
    assert "skipped  model merge  left out by --quick" in lines
    assert "setting  max_running = 7 (flag --max-running)" in lines
    assert lines[-1] == "all is well"


def test_no_model_is_prepared(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path / "none"))
    assert main(["doctor", "--port", "0"]) == 1
    shown = capfd.readouterr().out
    assert "error    model        the embedded model is not prepared" in shown
    assert "run `apply-service model prepare`" in shown
    assert "ok       merge " in shown
    assert "skipped  model merge  there is no model" in shown
    assert not (tmp_path / "none").exists()


def test_a_model_that_would_have_to_be_fetched_is_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--port", "0", "--model", "nobody/no-such-model"]) == 1
    assert "`apply-service model prepare nobody/no-such-model` fetches it" in capfd.readouterr().out


def test_a_damaged_model(doctor: Doctor, tiny_model_dir: Path, tmp_path: Path) -> None:
    model_dir = tmp_path / "model"
    shutil.copytree(tiny_model_dir, model_dir)
    manifest = Manifest(
        format_version=1,
        name="tiny",
        profile="embedded",
        licence="none",
        source="random",
        source_sha256="",
        dtype="float32",
        adapter_sha256=None,
        files=record_files(model_dir),
    )
    write_manifest(model_dir, manifest)
    assert doctor.checks("--quick", "--model", str(model_dir))["model"]["status"] == "ok"
    weights = model_dir / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    checks = doctor.checks("--quick", "--model", str(model_dir))
    assert doctor.code == 1
    assert "its content has changed" in checks["model"]["text"]


def test_the_port_is_taken(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        check = doctor.checks("--quick", "--port", str(port))["port"]
    assert doctor.code == 1
    assert "choose another --port" in check["text"]


def test_a_package_is_missing_or_too_old(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> str:
        if name == "litestar":
            raise PackageNotFoundError(name)
        return "0.1" if name == "uvicorn" else version(name)

    monkeypatch.setattr("apply_service.cli.doctor.package_checks.version", found)
    checks = doctor.checks()
    assert doctor.code == 1
    assert "litestar is not installed" in checks["packages"]["text"]
    assert "uvicorn is 0.1, not >=" in checks["packages"]["text"]
    assert "'.[service]'" in checks["packages"]["remedy"]
    assert "model" not in checks


def test_settings_that_do_not_fit_the_machine(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_checks, "available_memory_bytes", lambda: 1 << 30)
    checks = doctor.checks("--quick", "--kv-memory", "1GiB", "--threads", "4096")
    assert doctor.code == 0, "warnings alone are no failure"
    assert checks["memory"]["status"] == "warning"
    assert "lower kv_memory" in checks["memory"]["remedy"]
    assert checks["device"]["status"] == "warning"


def test_a_kv_cache_that_holds_no_usual_file(tiny_model_dir: Path) -> None:
    tiny = model_info(open_store().resolve(str(tiny_model_dir)))
    large = replace(tiny, kv_bytes_per_token=46_080)
    check = check_context(Settings(kv_memory=64 << 20, dtype="float32"), large)
    assert check.status == "warning"
    assert check.facts["kv_tokens"] == 1456
    assert check.remedy == "raise kv_memory to 180MiB or more"
    assert check_context(Settings(kv_memory=180 << 20, dtype="float32"), large).status == "ok"


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_the_kv_cache_is_counted_in_the_format_that_the_machine_takes(
    has_bfloat16: bool, tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("has_bfloat16", "has_fast_bfloat16"):
        monkeypatch.setattr(f"apply_service.models.loading.{name}", lambda: has_bfloat16)
    tiny = model_info(open_store().resolve(str(tiny_model_dir)))
    dtype: Literal["bfloat16", "float32"] = "bfloat16" if has_bfloat16 else "float32"
    taken = check_context(Settings(device="cpu"), tiny)
    assert taken.facts == check_context(Settings(device="cpu", dtype=dtype), tiny).facts


def test_who_may_use_the_server(doctor: Doctor, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    flags = ["--quick", "--keys-file", str(path)]
    outside = [*flags, "--host", "0.0.0.0"]
    assert "only this machine" in doctor.checks(*flags)["keys"]["text"]
    refused = doctor.checks(*outside)["keys"]
    assert (refused["status"], doctor.code) == ("error", 1)
    assert "apply-service key create" in refused["remedy"]
    assert "first start makes one" in doctor.checks(*outside, "--create-key")["keys"]["text"]
    assert doctor.checks(*outside, "--allow-anonymous", "true")["keys"]["status"] == "warning"
    KeyFile(path).create("me", SCOPES)
    assert "1 active" in doctor.checks(*outside)["keys"]["text"]
    KeyFile(path).revoke("me")
    assert "nobody gets in" in doctor.checks(*flags)["keys"]["text"]
    path.write_text("[]")
    assert doctor.checks(*flags)["keys"]["status"] == "error"


def test_a_wrong_setting_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--port", "many"]) == 2
    assert "port is 'many'" in capfd.readouterr().err


def test_redis_is_not_there_or_cannot_be(doctor: Doctor) -> None:
    url = f"redis://:secret@127.0.0.1:{free_port()}/0"
    report = doctor.report("--quick", "--redis-url", url)
    assert doctor.code == 1
    assert "secret" not in json.dumps(report)
    check = next(check for check in report["checks"] if check["name"] == "redis")
    assert "edits are served without it" in check["remedy"]
    assert report["settings"]["redis_url"]["origin"] == "flag --redis-url"
    wrong = doctor.checks("--quick", "--redis-url", "http://127.0.0.1")["redis"]
    assert wrong["status"] == "error"


@pytest.mark.redis
@needs_redis
def test_redis_with_login_limit_and_policy(doctor: Doctor) -> None:
    redis = RedisProcess(
        *("--requirepass", "right", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
    )
    try:
        address = f"127.0.0.1:{redis.port}/0"
        good = doctor.checks("--quick", "--redis-url", f"redis://:right@{address}")
        assert good["redis"]["status"] in ("ok", "warning"), "a busy machine answers late"
        assert good["redis"]["facts"]["has_password"] is True
        assert good["redis memory"]["status"] == "ok"
        for url, remedy in (
            (f"redis://:wrong@{address}", "correct the user name or password"),
            (f"redis://{address}", "put the password into the URL"),
            (f"rediss://:right@{address}", "write redis:// instead of rediss://"),
        ):
            bad = doctor.checks("--quick", "--redis-url", url)["redis"]
            assert bad["status"] == "error"
            assert remedy in bad["remedy"], bad
    finally:
        redis.kill()


@pytest.mark.redis
@needs_redis
def test_redis_without_limits(doctor: Doctor) -> None:
    redis = RedisProcess()
    try:
        unlimited = doctor.checks("--quick", "--redis-url", redis.url)["redis memory"]
        redis.call("CONFIG", "SET", "maxmemory", "64mb")
        refusing = doctor.checks("--quick", "--redis-url", redis.url)["redis memory"]
    finally:
        redis.kill()
    assert "set maxmemory:" in unlimited["remedy"]
    assert "allkeys-lru" in refusing["remedy"]
