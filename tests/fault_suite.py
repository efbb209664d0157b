"""What can happen to a Redis while requests load from it, each as a block around the requests."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from redis_process import RedisProcess, free_port

from apply_service.bench.throttled_proxy import ThrottledProxy

Fault = Callable[[RedisProcess], AbstractContextManager[str]]
"""Takes a server that holds the prompts of the requests; gives the URL that the engine is told."""


@contextmanager
def _repeating(action: Callable[[], object], every_s: float) -> Iterator[None]:
    """Do something again and again beside the block."""
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
    """Connections are taken, and nothing is ever said."""
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
    """Half of the time the server does not answer."""
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
    for key in redis.all_keys()[1::2]:
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
    """Some key is deleted all the time."""
    generator = random.Random(1)

    def delete() -> None:
        keys = redis.all_keys()
        for key in generator.sample(keys, len(keys) // 4):
            redis.call("DEL", key)

    with _repeating(delete, 0.01):
        yield redis.url


def _rewriting(change: Callable[[bytes], bytes]) -> Fault:
    """All values are changed, again and again, whatever is written meanwhile."""

    def rewrite_all(redis: RedisProcess) -> None:
        for key in redis.all_keys():
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
    """Each key holds the whole and sound value of another one."""
    keys = redis.all_keys()
    values = [redis.get(key) for key in keys]
    for key, value in zip(keys, values[1:] + values[:1], strict=True):
        redis.call("SET", key, value)
    yield redis.url


@contextmanager
def other_types(redis: RedisProcess) -> Iterator[str]:
    for key in redis.all_keys():
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


@contextmanager
def _lying_server(answer: bytes) -> Iterator[str]:
    """A server that gives the same answer to whatever it is sent."""
    is_over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    threads: list[threading.Thread] = []

    def talk(client: socket.socket) -> None:
        client.settimeout(0.05)
        with client:
            while not is_over.is_set():
                try:
                    if not client.recv(1 << 16):
                        return
                    client.sendall(answer)
                except TimeoutError:
                    continue
                except OSError:
                    return

    def accept() -> None:
        while not is_over.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            threads.append(threading.Thread(target=talk, args=(client,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        is_over.set()
        accepting.join()
        for thread in threads:
            thread.join()
        listener.close()


@contextmanager
def endless_value(redis: RedisProcess) -> Iterator[str]:
    with _lying_server(b"$999999999999\r\n" + b"x" * 100_000) as url:
        yield url


@contextmanager
def endless_line(redis: RedisProcess) -> Iterator[str]:
    with _lying_server(b"x" * 100_000) as url:
        yield url


@contextmanager
def endless_list(redis: RedisProcess) -> Iterator[str]:
    with _lying_server(b"*1000000000\r\n" + b"*1\r\n" * 10_000) as url:
        yield url


@contextmanager
def wrong_lengths(redis: RedisProcess) -> Iterator[str]:
    with _lying_server(b":99\r\n" * 50) as url:
        yield url


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
    "endless_value": endless_value,
    "endless_line": endless_line,
    "endless_list": endless_list,
    "wrong_lengths": wrong_lengths,
}
