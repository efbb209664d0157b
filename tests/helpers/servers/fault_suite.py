"""Faults of a Redis while requests load from it, each as a block around the requests."""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from faulty_link import (
    Change,
    delayed_by,
    dropping_after,
    faulty_link,
    flipping_bits,
    stalling_after,
)
from redis_impostor import GREETING, Answer, always, greeting_with, redis_impostor
from redis_process import RedisProcess, free_port

from benchmarks.cache.throttled_proxy import ThrottledProxy

# Keys of the cache; a server may keep the counts of its limits beside them.
CHUNKS = "apply-kv:*"

Fault = Callable[[RedisProcess], AbstractContextManager[str]]
"""Takes a server that holds the prompts of the requests; gives the URL that the engine is told."""


@contextmanager
def _repeating(action: Callable[[], object], every_s: float) -> Iterator[None]:
    """Repeat an action beside the block."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(every_s):
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def no_fault(redis: RedisProcess) -> Iterator[str]:
    yield redis.url


@contextmanager
def nobody_listens(redis: RedisProcess) -> Iterator[str]:
    yield f"redis://127.0.0.1:{free_port()}"


@contextmanager
def address_that_swallows(redis: RedisProcess) -> Iterator[str]:
    """Accept connections, and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def restarts(redis: RedisProcess) -> Iterator[str]:
    def restart() -> None:
        redis.kill()
        redis.start()

    with _repeating(restart, 0.1):
        yield redis.url


@contextmanager
def hangs(redis: RedisProcess) -> Iterator[str]:
    """Stop the server from answering half of the time."""
    is_paused = False

    def toggle() -> None:
        nonlocal is_paused
        is_paused = not is_paused
        (redis.pause if is_paused else redis.resume)()

    try:
        with _repeating(toggle, 0.15):
            yield redis.url
    finally:
        redis.resume()


@contextmanager
def out_of_memory(redis: RedisProcess) -> Iterator[str]:
    for key in redis.all_keys(CHUNKS)[1::2]:
        redis.call("DEL", key)
    redis.call("CONFIG", "SET", "maxmemory", "1")
    yield redis.url


@contextmanager
def evicts(redis: RedisProcess) -> Iterator[str]:
    redis.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    redis.call("CONFIG", "SET", "maxmemory", "1500000")
    yield redis.url


@contextmanager
def holes(redis: RedisProcess) -> Iterator[str]:
    """Delete keys all the time."""
    generator = random.Random(1)

    def delete() -> None:
        keys = redis.all_keys(CHUNKS)
        for key in generator.sample(keys, len(keys) // 4):
            redis.call("DEL", key)

    with _repeating(delete, 0.01):
        yield redis.url


def _rewriting(change: Callable[[bytes], bytes]) -> Fault:
    """Change all values again and again, whatever is written meanwhile."""

    def rewrite_all(redis: RedisProcess) -> None:
        for key in redis.all_keys(CHUNKS):
            value = redis.get(key)
            if value:
                redis.call("SET", key, change(value))

    @contextmanager
    def fault(redis: RedisProcess) -> Iterator[str]:
        rewrite_all(redis)
        with _repeating(lambda: rewrite_all(redis), 0.1):
            yield redis.url

    return fault


def _flip(value: bytes, position: int) -> bytes:
    changed = bytearray(value)
    changed[position] ^= 4
    return bytes(changed)


flipped_payload_bits = _rewriting(lambda value: _flip(value, len(value) // 2))
flipped_last_bits = _rewriting(lambda value: _flip(value, len(value) - 1))
wrong_layout = _rewriting(lambda value: _flip(value, 30))
wrong_version = _rewriting(lambda value: _flip(value, 8))
wrong_token_digest = _rewriting(lambda value: _flip(value, 75))
truncated_values = _rewriting(lambda value: value[: len(value) // 2])
longer_values = _rewriting(lambda value: value + b"x")
zeroed_values = _rewriting(lambda value: bytes(len(value)))


@contextmanager
def swapped_values(redis: RedisProcess) -> Iterator[str]:
    """Give each key the whole and sound value of another one."""
    keys = redis.all_keys(CHUNKS)
    values = [redis.get(key) for key in keys]
    for key, value in zip(keys, values[1:] + values[:1], strict=True):
        redis.call("SET", key, value)
    yield redis.url


@contextmanager
def other_types(redis: RedisProcess) -> Iterator[str]:
    for key in redis.all_keys(CHUNKS):
        redis.call("DEL", key)
        redis.call("RPUSH", key, "a", "b")
    yield redis.url


@contextmanager
def slow_link(redis: RedisProcess) -> Iterator[str]:
    with ThrottledProxy(("127.0.0.1", redis.port), bytes_per_s=2e5) as proxy:
        yield f"redis://127.0.0.1:{proxy.port}"


@contextmanager
def killed_clients(redis: RedisProcess) -> Iterator[str]:
    with _repeating(lambda: redis.call("CLIENT", "KILL", "TYPE", "normal"), 0.002):
        yield redis.url


@contextmanager
def flushed(redis: RedisProcess) -> Iterator[str]:
    with _repeating(lambda: redis.call("FLUSHALL"), 0.01):
        yield redis.url


@contextmanager
def garbage_keys(redis: RedisProcess) -> Iterator[str]:
    redis.call("DEBUG", "POPULATE", "100000", "apply-kv:1:00000000:garbage", "100")
    yield redis.url


@contextmanager
def locked(redis: RedisProcess) -> Iterator[str]:
    redis.call("CONFIG", "SET", "requirepass", "secret")
    yield redis.url


def _over_link(*, on_reply: Change | None = None, on_request: Change | None = None) -> Fault:
    """A sound server behind a link that changes the bytes it carries."""

    @contextmanager
    def fault(redis: RedisProcess) -> Iterator[str]:
        with faulty_link(redis.port, on_reply=on_reply, on_request=on_request) as link:
            yield link.url

    return fault


@contextmanager
def flaps(redis: RedisProcess) -> Iterator[str]:
    """Cut the link for 100 ms, restore it for 100 ms, and so on."""
    with faulty_link(redis.port) as link:

        def toggle() -> None:
            link.is_cut = not link.is_cut

        with _repeating(toggle, 0.1):
            yield link.url


@contextmanager
def restarts_with_other_data(redis: RedisProcess) -> Iterator[str]:
    """Replace the server by one with wrong values under the same keys."""
    keys = redis.all_keys(CHUNKS)
    values = [redis.get(key) for key in keys]
    redis.kill()
    redis.start()
    for key, value in zip(keys, reversed(values), strict=True):
        redis.call("SET", key, value[:200] + bytes(len(value) - 200))
    yield redis.url


@contextmanager
def clock_jumps(redis: RedisProcess) -> Iterator[str]:
    """Let a day pass for the server again and again, so that all its keys expire at once."""

    def expire_all() -> None:
        for key in redis.all_keys(CHUNKS):
            redis.call("PEXPIRE", key, "1")

    with _repeating(expire_all, 0.05):
        yield redis.url


def _saying(answer: Answer) -> Fault:
    """A server that is not a Redis and gives these answers."""

    @contextmanager
    def fault(_redis: RedisProcess) -> Iterator[str]:
        with redis_impostor(answer) as url:
            yield url

    return fault


def _error(text: bytes) -> Fault:
    """A server that greets, and answers every command with an error."""
    return _saying(greeting_with(GREETING, b"-" + text + b"\r\n"))


def _new_error_each_time() -> Fault:
    """Give a different error each time."""
    numbers = itertools.count()
    return _saying(lambda _command: b'-E%d"}\n# \x1b[1m x\r\n' % next(numbers))


FAULTS: dict[str, Fault] = {
    "no_fault": no_fault,
    "nobody_listens": nobody_listens,
    "address_that_swallows": address_that_swallows,
    "restarts": restarts,
    "hangs": hangs,
    "out_of_memory": out_of_memory,
    "evicts": evicts,
    "holes": holes,
    "flipped_payload_bits": flipped_payload_bits,
    "flipped_last_bits": flipped_last_bits,
    "wrong_layout": wrong_layout,
    "wrong_version": wrong_version,
    "wrong_token_digest": wrong_token_digest,
    "truncated_values": truncated_values,
    "longer_values": longer_values,
    "zeroed_values": zeroed_values,
    "swapped_values": swapped_values,
    "other_types": other_types,
    "slow_link": slow_link,
    "killed_clients": killed_clients,
    "flushed": flushed,
    "garbage_keys": garbage_keys,
    "locked": locked,
    "flaps": flaps,
    "restarts_with_other_data": restarts_with_other_data,
    "clock_jumps": clock_jumps,
    "stalls_on_values": _over_link(on_reply=stalling_after(1 << 12)),
    "stalls_on_large_values": _over_link(on_reply=stalling_after(1 << 17)),
    "stalls_on_writes": _over_link(on_request=stalling_after(1 << 12)),
    "stalls_at_once": _over_link(on_reply=stalling_after(0)),
    "drops_within_values": _over_link(on_reply=dropping_after(1 << 12)),
    "drops_at_once": _over_link(on_reply=dropping_after(0)),
    "late_replies": _over_link(on_reply=delayed_by(0.3)),
    "very_late_replies": _over_link(on_reply=delayed_by(0.9)),
    "flips_bits": _over_link(on_reply=flipping_bits),
    "error_noauth": _error(b"NOAUTH Authentication required."),
    "error_oom": _error(b"OOM command not allowed when used memory > 'maxmemory'."),
    "error_readonly": _error(b"READONLY You can't write against a read only replica."),
    "error_loading": _error(b"LOADING Redis is loading the dataset in memory"),
    "error_moved": _error(b"MOVED 3999 127.0.0.1:6381"),
    "error_busy": _error(b"BUSY Redis is busy running a script."),
    "errors_without_number": _new_error_each_time(),
    "greeting_is_odd": _saying(greeting_with(b"*1\r\n$4\r\nmode\r\n")),
    "greeting_is_nested": _saying(greeting_with(b"*2\r\n*1\r\n*1\r\n:1\r\n$-1\r\n")),
    "greeting_is_too_deep": _saying(greeting_with(b"*1\r\n" * 50)),
    "greeting_is_huge": _saying(greeting_with(b"$99999999999999999999\r\n")),
    "greeting_is_wide": _saying(greeting_with(b"*9999999\r\n" + b"*0\r\n" * 100_000)),
    "greeting_is_a_number": _saying(greeting_with(b":-1_0\r\n")),
    "greeting_is_empty": _saying(greeting_with(b"\r\n")),
    "endless_value": _saying(always(b"$999999999999\r\n" + b"x" * 100_000)),
    "endless_line": _saying(always(b"x" * 100_000)),
    "endless_list": _saying(always(b"*1000000000\r\n" + b"*1\r\n" * 10_000)),
    "wrong_lengths": _saying(always(b":99\r\n" * 50)),
}
