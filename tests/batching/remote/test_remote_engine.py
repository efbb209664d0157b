"""An engine at the other end of a socket is the same engine, and is not missed for long."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from engine_runs import RunningEngine, ScriptedProposer
from remote_engines import LIMIT_S, Ends, make_engine, make_request, wait_until

from batching.async_engine import AsyncEngine
from batching.engine import Engine
from batching.errors import (
    DuplicateRequestError,
    EngineError,
    EngineLostError,
    EngineStoppedError,
    ModelLoadError,
    QueueFullError,
    RequestTooLongError,
    StepFailedError,
)
from batching.events import Cancelled, Event, Failed, Finished, Tokens
from batching.model.runner import ModelRunner
from batching.recipes import ByteMerges, EditDrafts, StopTexts, TokenMerges
from batching.remote.engine_client import EngineClient
from batching.remote.engine_process import OwnedProcess
from batching.remote.engine_server import EngineServer
from batching.remote.frame_socket import ConnectionLostError, FrameSocket
from batching.remote.frames import (
    ClientFrame,
    EngineFrame,
    Events,
    NotPlainDataError,
    StartFailed,
    Submit,
    error_of,
    kind_of,
)
from batching.request import EngineRequest, Priority
from batching.step_plan import StepPlan
from lookup.merge_rules import MergeRules, MergeText


@dataclass
class Link:
    """A way to an engine in this process; `cut` is what a killed process would be."""

    connection: FrameSocket[EngineFrame]
    cut: Callable[[], None]
    closed: list[bool] = field(default_factory=list)

    def kill(self) -> None:
        self.cut()

    def close(self) -> str:
        self.connection.close()
        self.closed.append(True)
        return "was cut off"


class Server:
    """Engines that are served to whoever connects; each connection after a loss has a new one."""

    def __init__(self, model_dir: Path) -> None:
        self._model_dir = model_dir
        self.engines: list[Engine] = []
        self.links: list[Link] = []
        self.refusals: list[EngineError] = []
        self._server: EngineServer | None = None

    def connect(self) -> Link:
        """Connect to the engine, a new one if the last was lost."""
        ours, theirs = socket.socketpair()
        connection: FrameSocket[ClientFrame] = FrameSocket(theirs, ClientFrame)
        link = Link(FrameSocket(ours, EngineFrame), connection.close)
        self.links.append(link)
        if self.refusals:
            error = self.refusals.pop()
            connection.send(StartFailed(kind_of(error), str(error)))
            connection.close()
            return link
        if self._server is None:
            self.engines.append(make_engine(self._model_dir))
            self._server = EngineServer(self.engines[-1])
        threading.Thread(target=self._server.serve, args=(connection,), daemon=True).start()
        return link

    def lose(self) -> None:
        """The engine's process is gone."""
        self._server = None
        self.links[-1].cut()

    def stop(self) -> None:
        for engine in self.engines:
            engine.stop()


@pytest.fixture
def server(tiny_model_dir: Path) -> Iterator[Server]:
    server = Server(tiny_model_dir)
    yield server
    server.stop()


@contextmanager
def client_of(server: Server) -> Iterator[EngineClient]:
    client = EngineClient(server.connect)
    try:
        yield client
    finally:
        client.stop()


def requests_of_all_kinds() -> list[EngineRequest]:
    """Each with another recipe or option."""
    text = [*b"one = 1\ntwo = 2\nthree = 3\n"]
    texts = [MergeText(symbols=(*text[:15], one, *text[16:]), weight=0.3) for one in b"289"]
    tokens = [replace(one, symbols=tuple(3 + symbol for symbol in one.symbols)) for one in texts]
    end = (2,)
    return [
        make_request("plain"),
        make_request("sampled", sampling={"temperature": 0.9, "seed": 2**64 - 1, "top_k": 40}),
        make_request("logprobs", sampling={"has_logprobs": True}),
        make_request("stopped", stop_checker=StopTexts([b"\x80", b"a"]), max_tokens=200),
        make_request(
            "drafted",
            proposer=EditDrafts(original=text, snippet_segments=[text[4:9]], merge=text[::-1]),
        ),
        make_request("tokens", constraint=TokenMerges(MergeRules(texts=tokens, end_token_ids=end))),
        make_request(
            "bytes",
            constraint=ByteMerges(
                rules=MergeRules(texts=texts, end_token_ids=[*b"</x>"], prior_scale=2.0),
                end_token_ids=end,
                opening=b"<x>",
            ),
            max_tokens=60,
        ),
        make_request("batch", priority=Priority.BATCH, cache_salt=b"tenant"),
        make_request("traced", is_traced=True),
    ]


def without_times(event: Finished) -> Any:
    stats = event.stats
    return (
        event.reason,
        event.evidence,
        [(step.token_ids, step.origins, step.rejected_token_ids) for step in event.trace],
        stats.num_output_tokens,
        stats.forced,
        stats.accepted <= stats.drafted,
    )


def test_what_comes_through_a_socket_is_what_the_engine_says(
    tiny_model_dir: Path, server: Server
) -> None:
    requests = requests_of_all_kinds()
    engine = make_engine(tiny_model_dir)
    here = RunningEngine(engine)
    expected = {one.request_id: here.run([one])[0] for one in requests}
    engine.stop()
    with client_of(server) as client:
        assert client.model_info == server.engines[0].model_info
        there = RunningEngine(client)  # type: ignore[arg-type]
        for request, outcome in zip(requests, there.run(requests), strict=True):
            name = request.request_id
            assert outcome.token_ids == expected[name].token_ids, name
            assert without_times(outcome.finished) == without_times(expected[name].finished)
            assert [one.token_id for one in outcome.logprobs] == [
                one.token_id for one in expected[name].logprobs
            ]
        assert expected["stopped"].finished.reason == "stop"
        assert [name for name, one in expected.items() if one.finished.trace] == ["traced"]
        assert {len(expected[name].finished.evidence) > 0 for name in ("tokens", "bytes")} == {True}


def test_every_field_of_a_request_is_sent() -> None:
    assert {one.name for one in fields(EngineRequest)} == {*Submit.__struct_fields__}


def test_an_engine_of_another_release_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batching.remote.engine_server.protocol", lambda: "of old")
    with pytest.raises(ModelLoadError, match="of another release than this server"):
        EngineClient(server.connect)
    assert all(link.closed for link in server.links)


def test_limits_are_kept_without_a_word_to_the_engine(server: Server) -> None:
    with client_of(server) as client:
        client.start(lambda event: None)
        sent = client._link.connection.post
        frames: list[object] = []
        client._link.connection.post = frames.append  # type: ignore[method-assign]
        with pytest.raises(RequestTooLongError):
            client.submit(make_request("long", max_tokens=100_000))
        for number in range(64):
            client.submit(make_request(f"r{number}"))
        with pytest.raises(QueueFullError, match="64 requests are queued or running"):
            client.submit(make_request("one more"))
        with pytest.raises(QueueFullError):
            client.submit(make_request("batch", priority=Priority.BATCH))
        client._live.end("r0")
        with pytest.raises(DuplicateRequestError):
            client.submit(make_request("r1"))
        assert len(frames) == 64
        client._link.connection.post = sent  # type: ignore[method-assign]


def test_objects_of_this_process_are_refused(server: Server) -> None:
    with client_of(server) as client:
        client.start(lambda event: None)
        with pytest.raises(NotPlainDataError, match=r"batching\.recipes"):
            client.submit(make_request("own", proposer=ScriptedProposer([1])))
        client.submit(make_request("own"))


def test_a_lost_engine_fails_its_requests_and_comes_back(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    ends = Ends()
    with client_of(server) as client:
        client.start(ends.take)
        for number in range(12):
            client.submit(make_request(f"r{number}", max_tokens=2000))
        wait_until(lambda: len(ends.num_tokens) >= 8)
        server.refusals = [ModelLoadError("no memory")]
        server.lose()
        wait_until(lambda: len(ends.ends) == 12)
        assert all(isinstance(one, Failed) for one in ends.ends.values())
        errors = {type(one.error) for one in ends.ends.values() if isinstance(one, Failed)}
        assert errors == {EngineLostError}
        if not client.is_up:
            with pytest.raises(EngineLostError, match="in a moment"):
                client.submit(make_request("early"))
            assert client.stalled_s() == 0.0
        wait_until(lambda: client.is_up)
        client.submit(make_request("after"))
        wait_until(lambda: "after" in ends.ends)
        assert isinstance(ends.ends["after"], Finished)
        assert ends.num_tokens["after"] == 24
    assert "was cut off" in caplog.text
    assert "again in 0.5 s: no memory" in caplog.text
    assert len(server.engines) == 2


def test_a_client_that_goes_withdraws_its_requests_and_no_others(server: Server) -> None:
    ends = Ends()
    with client_of(server) as stays:
        stays.start(ends.take)
        goes = EngineClient(server.connect)
        goes.start(lambda event: None)
        for number in range(4):
            goes.submit(make_request(f"goes-{number}", max_tokens=3000))
            stays.submit(make_request(f"stays-{number}", max_tokens=60))
        engine = server.engines[0]
        wait_until(lambda: engine.stats().num_running == 8)
        server.links[-1].cut()
        wait_until(lambda: len(ends.ends) == 4)
        assert all(isinstance(one, Finished) for one in ends.ends.values())
        wait_until(lambda: engine.stats().num_running == 0)
        assert engine.stats().cancelled == 4
        goes.stop()
    assert len(server.engines) == 1


def test_two_clients_share_an_engine_and_its_limits(server: Server) -> None:
    with client_of(server) as one, client_of(server) as other:
        ends = Ends(), Ends()
        one.start(ends[0].take)
        other.start(ends[1].take)
        for number in range(40):
            one.submit(make_request(f"one-{number}", max_tokens=20))
            other.submit(make_request(f"other-{number}", max_tokens=20))
        wait_until(lambda: len(ends[0].ends) == len(ends[1].ends) == 40)
    kinds = [type(end) for side in ends for end in side.ends.values()]
    refused = [end for side in ends for end in side.ends.values() if isinstance(end, Failed)]
    assert len(kinds) == 80
    assert all(isinstance(end.error, QueueFullError) for end in refused)
    assert kinds.count(Finished) >= 64


@pytest.mark.parametrize("seed", range(3))
def test_every_request_has_one_end_whatever_happens(server: Server, seed: int) -> None:
    """Random cancels and handles that are left, from an event loop, as the service does."""
    generator = random.Random(seed)

    async def one(engine: AsyncEngine, number: int, room: asyncio.Semaphore) -> str:
        async with room:
            handle = engine.submit(
                make_request(f"{seed}-{number}", max_tokens=generator.randint(1, 60))
            )
            patience = generator.choice([0, 1, 3, 1000])
            if generator.random() < 0.2:
                handle.cancel()
            last: Event | None = None
            async for event in handle:
                assert last is None or isinstance(last, Tokens)
                last = event
                patience -= 1
                if patience < 0:
                    handle.cancel()
            return type(last).__name__

    async def all_of_them() -> list[str]:
        engine = AsyncEngine(client)
        engine.start()
        room = asyncio.Semaphore(32)
        ends = await asyncio.gather(*(one(engine, number, room) for number in range(150)))
        assert not engine._handles
        await engine.stop()
        return ends

    client = EngineClient(server.connect)
    ends = asyncio.run(all_of_them())
    assert set(ends) == {"Finished", "Cancelled"}
    stats = server.engines[0].stats()
    assert (stats.num_running, stats.num_waiting) == (0, 0)
    assert stats.num_free_blocks == stats.num_blocks


def test_events_of_nobody_are_not_told(server: Server) -> None:
    """A request may have been failed while it was on its way to the engine that came back."""
    ends = Ends()
    with client_of(server) as client:
        client.start(ends.take)
        client.submit(make_request("failed", max_tokens=200))
        assert client._live.end("failed")
        client.submit(make_request("after"))
        wait_until(lambda: "after" in ends.ends)
        wait_until(lambda: client.stats().finished == 2)
    assert set(ends.ends) == set(ends.num_tokens) == {"after"}


def test_a_process_that_ends_at_once_is_an_engine_that_was_lost() -> None:
    with pytest.raises(EngineLostError, match="ended while it was started"):
        EngineClient(lambda: OwnedProcess.start([sys.executable, "-c", "pass"], b"{}"))


def test_a_long_step_is_no_silence(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    launch = ModelRunner.launch

    def launch_late(runner: ModelRunner, plan: StepPlan) -> Any:
        gate.wait(LIMIT_S)
        return launch(runner, plan)

    monkeypatch.setattr(ModelRunner, "launch", launch_late)
    ends = Ends()
    client = EngineClient(server.connect, stall_s=4.0)
    client.start(ends.take)
    client.submit(make_request("long"))
    wait_until(lambda: client.stalled_s() > 5.0)
    assert client.is_up
    assert client.silent_s() == 0.0
    gate.set()
    wait_until(lambda: "long" in ends.ends)
    assert isinstance(ends.ends["long"], Finished)
    client.stop()
    assert len(server.engines) == 1


def test_stopping_fails_what_is_left(server: Server) -> None:
    ends = Ends()
    with client_of(server) as client:
        client.start(ends.take)
        client.submit(make_request("r", max_tokens=3000))
        wait_until(lambda: bool(ends.num_tokens))
        client.refuse_new()
        with pytest.raises(EngineStoppedError):
            client.submit(make_request("late"))
    end = ends.ends["r"]
    assert isinstance(end, Failed | Cancelled)
    assert not isinstance(end, Failed) or isinstance(end.error, EngineStoppedError)
    assert server.links[0].closed


def test_an_engine_that_cannot_start_says_why(server: Server) -> None:
    server.refusals = [ModelLoadError("folder holds no config.json")]
    with pytest.raises(ModelLoadError, match=r"no config\.json"):
        EngineClient(server.connect)
    assert server.links[0].closed


def test_figures_come_by_themselves(server: Server) -> None:
    with client_of(server) as client:
        assert client.stats().finished == 0
        ends = Ends()
        client.start(ends.take)
        client.submit(make_request("r"))
        wait_until(lambda: client.stats().finished == 1)
        assert client.stats().output_tokens == 24
        assert client.stats().num_blocks == server.engines[0].stats().num_blocks
        assert client.stalled_s() == 0.0


@pytest.mark.parametrize("error", [QueueFullError("full"), EngineLostError("gone")])
def test_errors_keep_their_kind_and_words(error: EngineError) -> None:
    (event,) = Events.of([Failed("r", error)]).unwrap()
    assert isinstance(event, Failed)
    assert (type(event.error), str(event.error)) == (type(error), str(error))
    assert type(error_of("of a newer version", "?")) is StepFailedError


def test_frames_that_find_no_room_keep_their_order() -> None:
    """A frame that fits in part is finished before the next; one that cannot begin is not begun."""
    ours, theirs = socket.socketpair()
    sender: FrameSocket[ClientFrame] = FrameSocket(ours, ClientFrame)
    reader: FrameSocket[EngineFrame] = FrameSocket(theirs, EngineFrame)
    generator = random.Random(0)
    frames = [
        Events.of([Tokens("r", tuple(generator.randbytes(generator.randrange(1, 200_000))), ())])
        for _ in range(60)
    ]
    received: list[EngineFrame] = []
    reading = threading.Thread(
        target=lambda: received.extend(reader.receive() for _ in frames), daemon=True
    )
    num_refused = 0
    for at, frame in enumerate(frames):
        if sender.try_send(frame):
            continue
        num_refused += 1
        if not reading.is_alive():
            reading.start()
        if at % 2:
            sender.send(frame)
        else:
            sender.flush()
            while not sender.try_send(frame):
                sender.flush()
    sender.flush()
    reading.join(60.0)
    assert num_refused > 0
    assert received == frames
    for connection in (sender, reader):
        connection.close()


def test_who_posts_frames_does_not_wait_for_a_reader() -> None:
    ours, theirs = socket.socketpair()
    sender: FrameSocket[ClientFrame] = FrameSocket(ours, ClientFrame)
    reader: FrameSocket[EngineFrame] = FrameSocket(theirs, EngineFrame)
    frames = [Events.of([Tokens("r", (number,) * 100_000, ())]) for number in range(60)]
    for frame in frames:
        sender.post(frame)
    assert [reader.receive() for _ in frames] == frames
    sender.post(frames[0])
    assert reader.receive() == frames[0]
    reader.limit_silence(0.01)
    with pytest.raises(TimeoutError):
        reader.receive()
    for frame in frames:
        sender.post(frame)
    sender.close()
    with pytest.raises(ConnectionLostError):
        sender.post(frames[0])
    reader.close()


def test_silence_in_a_frame_loses_nothing_of_it() -> None:
    ours, theirs = socket.socketpair()
    reader: FrameSocket[EngineFrame] = FrameSocket(theirs, EngineFrame)
    reader.limit_silence(0.01)
    frame = Events.of([Tokens("r", (1, 2, 3), ())])
    body = msgspec.msgpack.encode(frame)
    for piece in (len(body).to_bytes(4, "big"), body[:3]):
        ours.sendall(piece)
        with pytest.raises(TimeoutError):
            reader.receive()
    ours.sendall(body[3:])
    assert reader.receive() == frame
    reader.close()
    ours.close()


def test_a_client_that_reads_late_gets_all_events_in_order(server: Server) -> None:
    """The engine does not wait for it, and goes on for others."""
    late = server.connect()
    late.connection.receive()
    with client_of(server) as client:
        for number in range(8):
            late.connection.send(Submit.of(make_request(f"late-{number}", max_tokens=300)))
        running = RunningEngine(client)  # type: ignore[arg-type]
        (outcome,) = running.run([make_request("prompt", max_tokens=300)])
        assert len(outcome.token_ids) == 300
        wait_until(lambda: server.engines[0].num_live == 0)
        answers: dict[str, list[int]] = {f"late-{number}": [] for number in range(8)}
        ended: set[str] = set()
        while len(ended) < 8:
            frame = late.connection.receive()
            for event in frame.unwrap() if isinstance(frame, Events) else ():
                assert event.request_id not in ended
                if isinstance(event, Tokens):
                    answers[event.request_id] += event.token_ids
                else:
                    assert isinstance(event, Finished)
                    ended.add(event.request_id)
    late.close()
    alone = RunningEngine(make_engine(server._model_dir))
    requests = [make_request(name, max_tokens=300) for name in answers]
    assert [one.token_ids for one in alone.run(requests)] == list(answers.values())
    alone.engine.stop()
