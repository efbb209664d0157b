"""One engine behind a Unix socket: several clients, one model, nobody else."""

from __future__ import annotations

import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from engine_runs import RunningEngine
from remote_engines import Ends, make_engine, make_request, wait_until

from batching.config import ModelInfo
from batching.errors import EngineLostError, EngineStoppedError, ModelLoadError
from batching.events import Cancelled, Failed, Finished
from batching.remote.engine_client import EngineClient
from batching.remote.engine_listener import EngineSocketError, listen_at, serve_shared
from batching.remote.engine_process import SharedEngine


class Shared:
    """An engine that listens, and the thread that serves it."""

    def __init__(self, path: Path, model_dir: Path, *, drain_s: float = 0.0) -> None:
        self.engine = make_engine(model_dir)
        self._until = threading.Event()
        serve = partial(serve_shared, until=self._until, drain_s=drain_s)
        self._thread = threading.Thread(target=serve, args=(listen_at(path), self.engine))
        self._thread.start()

    def stop(self) -> None:
        self._until.set()
        self._thread.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "engine.sock"


@pytest.fixture
def shared(path: Path, tiny_model_dir: Path) -> Iterator[Shared]:
    shared = Shared(path, tiny_model_dir)
    yield shared
    shared.stop()


@contextmanager
def client_of(path: Path) -> Iterator[EngineClient]:
    client = EngineClient(partial(SharedEngine.connect, path))
    try:
        yield client
    finally:
        client.stop()


def test_two_clients_get_what_one_engine_says(
    path: Path, shared: Shared, tiny_model_dir: Path
) -> None:
    requests = [make_request(f"r{number}") for number in range(6)]
    alone = make_engine(tiny_model_dir)
    expected = [one.token_ids for one in RunningEngine(alone).run(requests)]
    alone.stop()
    with client_of(path) as first, client_of(path) as second:
        assert first.model_info == second.model_info == shared.engine.model_info
        outcomes = RunningEngine(first).run(requests[:3])  # type: ignore[arg-type]
        outcomes += RunningEngine(second).run(requests[3:])  # type: ignore[arg-type]
        assert [one.token_ids for one in outcomes] == expected


def test_who_leaves_takes_only_their_own_requests_along(path: Path, shared: Shared) -> None:
    ends = Ends()
    with client_of(path) as stays:
        stays.start(ends.take)
        with client_of(path) as leaves:
            leaves.start(lambda event: None)
            for number in range(4):
                leaves.submit(make_request(f"left{number}", max_tokens=2000))
            stays.submit(make_request("stays", max_tokens=40))
            wait_until(lambda: shared.engine.num_live == 5 or "stays" in ends.ends)
        wait_until(lambda: "stays" in ends.ends)
        assert isinstance(ends.ends["stays"], Finished)
        wait_until(lambda: shared.engine.num_live == 0)


def test_an_engine_that_ends_lets_running_requests_end(path: Path, tiny_model_dir: Path) -> None:
    shared = Shared(path, tiny_model_dir, drain_s=60.0)
    ends = Ends()
    with client_of(path) as client:
        client.start(ends.take)
        client.submit(make_request("running", max_tokens=30))
        wait_until(lambda: shared.engine.num_live == 1 or bool(ends.ends))
        shared.stop()
        wait_until(lambda: "running" in ends.ends)
        assert isinstance(ends.ends["running"], Finished)
        wait_until(lambda: not client.is_up)
        assert not path.exists()
        with pytest.raises(EngineLostError, match="was lost"):
            client.submit(make_request("later"))
        again = Shared(path, tiny_model_dir)
        wait_until(lambda: client.is_up)
        client.submit(make_request("later"))
        wait_until(lambda: "later" in ends.ends)
        assert isinstance(ends.ends["later"], Finished)
    again.stop()


def test_without_time_to_drain_requests_fail_clearly(path: Path, tiny_model_dir: Path) -> None:
    shared = Shared(path, tiny_model_dir)
    ends = Ends()
    with client_of(path) as client:
        client.start(ends.take)
        client.submit(make_request("running", max_tokens=2000))
        wait_until(lambda: shared.engine.num_live == 1)
        shared.stop()
        wait_until(lambda: "running" in ends.ends)
        end = ends.ends["running"]
        assert isinstance(end, Failed)
        assert isinstance(end.error, EngineStoppedError | EngineLostError)


def test_a_client_may_cancel(path: Path, shared: Shared) -> None:
    ends = Ends()
    with client_of(path) as client:
        client.start(ends.take)
        client.submit(make_request("long", max_tokens=2000))
        client.cancel("long")
        wait_until(lambda: "long" in ends.ends)
        assert isinstance(ends.ends["long"], Cancelled | Finished)


def test_only_this_user_may_connect(path: Path, shared: Shared) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_engine_is_refused_and_a_dead_ones_socket_is_taken(path: Path) -> None:
    with listen_at(path), pytest.raises(EngineSocketError, match="already; stop it"):
        listen_at(path)
    assert path.exists(), "as after kill -9"
    listen_at(path).close()


def test_a_path_that_cannot_be_listened_at_is_said(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(EngineSocketError, match="no socket"):
        listen_at(tmp_path / "file")
    with pytest.raises(EngineSocketError, match="in a folder of yours"):
        listen_at(tmp_path / "missing" / "engine.sock")
    with pytest.raises(EngineSocketError, match="at most 100 bytes"):
        listen_at(tmp_path / ("x" * 200))


def test_without_an_engine_it_is_said_how_to_start_one(path: Path) -> None:
    with pytest.raises(EngineLostError, match="apply-service engine --engine-socket"):
        SharedEngine.connect(path)


def test_an_engine_of_another_model_is_refused(path: Path, shared: Shared) -> None:
    def check(info: ModelInfo) -> None:
        raise ModelLoadError(f"not {info.fingerprint[:4]}")

    with pytest.raises(ModelLoadError, match="not "):
        EngineClient(partial(SharedEngine.connect, path), check=check)


def test_what_is_no_frame_ends_one_connection_alone(path: Path, shared: Shared) -> None:
    with client_of(path) as client:
        ends = Ends()
        client.start(ends.take)
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(path))
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.settimeout(30.0)
            while stranger.recv(1 << 16):
                pass
        client.submit(make_request("after", max_tokens=4))
        wait_until(lambda: "after" in ends.ends)
