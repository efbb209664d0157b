"""Serves an engine over sockets, to one client or to several."""

from __future__ import annotations

import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from batching.engine import Engine
from batching.errors import EngineError
from batching.events import Event, Failed, Tokens
from batching.remote.frame_socket import ConnectionLostError, FrameSocket
from batching.remote.frames import (
    HEARTBEAT_S,
    Cancel,
    ClientFrame,
    Configure,
    Events,
    Hello,
    Pulse,
    StartFailed,
    Submit,
    kind_of,
    protocol,
)

# Figures follow the end of a request so soon, and come as a sign of life twice as often as they
# must.
_FRESH_S = 0.1
_PULSE_S = HEARTBEAT_S / 2
_MOST_EVENTS = 512
# So long a client may take to read its last events.
_FLUSH_S = 2.0

_CLOSED = None


class _Wake:
    """There is news for the figures."""


_WAKE = _Wake()


class EngineServer:
    """Passes requests to an engine and its events back. Starts the engine; the caller stops it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._owners: dict[str, _Client] = {}
        self._clients: set[_Client] = set()
        self._gathered: dict[_Client, list[Event]] = {}
        engine.start(self._publish, flush=self._flush)

    def serve(self, connection: FrameSocket[ClientFrame]) -> None:
        """Serve one client until it leaves; what it has not withdrawn by then is."""
        client = _Client(connection, self._engine)
        self._clients.add(client)
        connection.send(
            Hello(
                model_info=self._engine.model_info,
                max_live=self._engine.max_live,
                protocol=protocol(),
            )
        )
        client.start()
        try:
            while isinstance(frame := connection.receive(), Submit | Cancel):
                if isinstance(frame, Cancel):
                    self._engine.cancel(frame.request_id)
                else:
                    self._submit(client, frame)
        except ConnectionLostError:
            pass
        finally:
            for request_id in [one for one, owner in self._owners.items() if owner is client]:
                self._engine.cancel(request_id)
            self._clients.discard(client)
            client.close()

    def close(self) -> None:
        """Send all clients what there is, and end their connections."""
        for client in list(self._clients):
            client.close()

    def _submit(self, client: _Client, frame: Submit) -> None:
        # The first event may come before `submit` returns.
        is_new = self._owners.setdefault(frame.request_id, client) is client
        try:
            self._engine.submit(frame.request())
        except EngineError as error:
            if is_new:
                self._owners.pop(frame.request_id, None)
            client.put(Failed(frame.request_id, error))

    def _publish(self, event: Event) -> None:
        """Called on the engine's thread."""
        if isinstance(event, Tokens):
            client = self._owners.get(event.request_id)
        else:
            client = self._owners.pop(event.request_id, None)
            if client is not None:
                client.has_news = True
        if client is not None:
            self._gathered.setdefault(client, []).append(event)

    def _flush(self) -> None:
        """Called on the engine's thread, behind the events that belong together."""
        gathered, self._gathered = self._gathered, {}
        for client, events in gathered.items():
            client.tell(events)


class _Client:
    """Sends events to one client: at once on the engine's thread, or on a thread that may wait.

    A handover to another thread costs a step more than the events themselves. So do figures, which
    are made beside a step and hold the interpreter: they follow ends, not tokens.
    """

    def __init__(self, connection: FrameSocket[ClientFrame], engine: Engine) -> None:
        self._connection = connection
        self._engine = engine
        self._events: queue.SimpleQueue[Event | _Wake | None] = queue.SimpleQueue()
        self._num_unsent = 0
        self._lock = threading.Lock()
        self.has_news = True
        self._is_resting = False
        self._thread = threading.Thread(target=self._run, name="engine-events", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def put(self, event: Event) -> None:
        """Send an event, soon."""
        with self._lock:
            self._num_unsent += 1
        self._events.put(event)

    def tell(self, events: Sequence[Event]) -> None:
        """Send events without waiting; called on the engine's thread alone, so they keep order."""
        try:
            if self._num_unsent or not self._connection.try_send(Events.of(events)):
                for event in events:
                    self.put(event)
        except ConnectionLostError:
            return  # whoever reads from the connection sees it too
        if self.has_news and self._is_resting:
            self._events.put(_WAKE)

    def close(self) -> None:
        """Send what there is and no more."""
        self._events.put(_CLOSED)
        self._thread.join(_FLUSH_S)
        self._connection.close()
        self._thread.join()

    def _run(self) -> None:
        with suppress(ConnectionLostError):
            self._send_all()
        if self._engine.is_lost:
            self._connection.close()  # whoever reads from it ends the process or its service

    def _send_all(self) -> None:
        pulsed_at, is_open = 0.0, True
        while is_open and not self._engine.is_lost:
            # News that come between these two lines wake the thread, or are seen by it.
            self._is_resting = True
            self._is_resting = not self.has_news
            events, is_open = self._take(_PULSE_S if self._is_resting else _FRESH_S)
            self._is_resting = False
            if events:
                self._connection.send(Events.of(events))
                self.has_news = True
                with self._lock:
                    self._num_unsent -= len(events)
            now = time.monotonic()
            if now - pulsed_at >= (_FRESH_S if self.has_news else _PULSE_S):
                self.has_news = bool(events)
                self._connection.send(Pulse(self._engine.stats(), self._engine.stalled_s()))
                pulsed_at = now
        self._connection.flush()

    def _take(self, timeout_s: float) -> tuple[list[Event], bool]:
        """What there is to send, waited for, and whether there may be more."""
        events: list[Event] = []
        try:
            event = self._events.get(timeout=timeout_s)
            while event is not _CLOSED:
                if not isinstance(event, _Wake):
                    events.append(event)
                if len(events) == _MOST_EVENTS:
                    return events, True
                event = self._events.get_nowait()
        except queue.Empty:
            return events, True
        return events, False


def serve_engine(fd: int, load: Callable[[bytes], Engine]) -> int:
    """Serve the engine that `load` makes of its settings; the exit status.

    If the other end goes, the process ends, even while it loads.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all processes at once
    connection: FrameSocket[ClientFrame] = FrameSocket(socket.socket(fileno=fd), ClientFrame)
    is_loaded = threading.Event()
    try:
        frame = connection.receive()
    except ConnectionLostError:
        return 1
    assert isinstance(frame, Configure), "settings come first"
    threading.Thread(target=_watch, args=(fd, is_loaded), daemon=True).start()
    try:
        engine = load(frame.settings)
    except EngineError as error:
        return _give_up(connection, kind_of(error), str(error))
    except Exception as error:  # the other end has nobody else to ask
        return _give_up(connection, "", f"{type(error).__name__}: {error}")
    is_loaded.set()
    try:
        EngineServer(engine).serve(connection)
    except ConnectionLostError:
        pass
    finally:
        engine.stop()
    return 1 if engine.is_lost else 0


def _give_up(connection: FrameSocket[ClientFrame], kind: str, message: str) -> int:
    with suppress(ConnectionLostError):
        connection.send(StartFailed(kind, message))
    return 1


def _watch(fd: int, is_loaded: threading.Event) -> None:
    """End the process if the other end goes while the model is being loaded."""
    with socket.socket(fileno=os.dup(fd)) as watched:
        while not is_loaded.wait(0.5):
            try:
                if not watched.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    os._exit(1)
            except BlockingIOError:
                continue
            except OSError:
                os._exit(1)
