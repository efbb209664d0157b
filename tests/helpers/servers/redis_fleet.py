"""Real Redis servers together: a cluster of primaries and replicas, a master under sentinels."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
from redis_process import RedisProcess, find_redis_server, free_port

WAIT_S = 30.0
NUM_SLOTS = 16384
MASTER = "main"


@dataclass(frozen=True)
class RedisFleet:
    """The servers that hold values, those that take writes at the start first.

    several: the URL for whoever starts while the first server is dead
    """

    url: str
    servers: list[RedisProcess]
    several: str

    def num_keys(self) -> list[int]:
        """How many of our keys each server holds, those that are gone not counted."""
        alive = [server for server in self.servers if server.is_alive]
        return [len(server.all_keys("apply-kv:*")) for server in alive]


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait for something that servers do by themselves."""
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, f"not in {WAIT_S} s: {what}"
        time.sleep(0.05)


@contextmanager
def redis_cluster(num_primaries: int = 3, *, node_timeout_ms: int = 1000) -> Iterator[RedisFleet]:
    """A cluster in which each primary has a replica, which replaces it after the timeout.

    A machine that is busy may let a short timeout pass by itself.
    """
    options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout_ms)]
    options += ["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"]
    with ExitStack() as stack:
        servers = []
        for _ in range(2 * num_primaries):
            servers.append(RedisProcess(*options, port=_low_port()))
            stack.callback(servers[-1].kill)
        clients = [stack.enter_context(redis.Redis(port=server.port)) for server in servers]
        for number, client in enumerate(clients):
            # Else two nodes may hold to the same slot.
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        for client in clients[1:]:
            client.execute_command("CLUSTER MEET", "127.0.0.1", servers[0].port)
        for number, client in enumerate(clients[:num_primaries]):
            first, last = (NUM_SLOTS * n // num_primaries for n in (number, number + 1))
            slots = range(first, last)
            client.execute_command("CLUSTER ADDSLOTS", *slots)
        ids = [client.execute_command("CLUSTER MYID").decode() for client in clients]
        wait_until(
            lambda: all(_num_known(client) == len(servers) for client in clients),
            "every node knows the others",
        )
        for number, client in enumerate(clients[num_primaries:]):
            client.execute_command("CLUSTER REPLICATE", ids[number])
        wait_until(lambda: all(map(_is_cluster_whole, clients)), "the cluster is whole")
        wait_until(
            lambda: all(map(_has_replica, clients[:num_primaries])), "each primary has its replica"
        )
        first, second = (f"127.0.0.1:{server.port}" for server in servers[:2])
        yield RedisFleet(
            f"redis+cluster://{first}", servers, several=f"redis+cluster://{first},{second}"
        )


@contextmanager
def redis_sentinel(num_sentinels: int = 3) -> Iterator[RedisFleet]:
    """A master and its replica, watched by sentinels that replace it after a second."""
    with ExitStack() as stack:
        master = RedisProcess("--repl-diskless-sync-delay", "0")
        stack.callback(master.kill)
        replica = RedisProcess("--replicaof", "127.0.0.1", str(master.port))
        stack.callback(replica.kill)
        client = stack.enter_context(redis.Redis(port=master.port))
        wait_until(lambda: _has_replica(client), "the master has its replica")
        ports = [free_port() for _ in range(num_sentinels)]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sentinel-")))
        for port in ports:
            process = _start_sentinel(folder / f"{port}.conf", port, master.port)
            stack.callback(process.wait)
            stack.callback(process.kill)
        sentinels = [stack.enter_context(redis.Redis(port=port)) for port in ports]
        wait_until(
            lambda: all(_num_watchers(one) == num_sentinels - 1 for one in sentinels),
            "the sentinels know one another and the replica",
        )
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        url = f"redis+sentinel://{hosts}/{MASTER}"
        yield RedisFleet(url, [master, replica], several=url)


def _start_sentinel(path: Path, port: int, master_port: int) -> subprocess.Popen[bytes]:
    executable = find_redis_server()
    assert executable is not None
    path.write_text(
        f"port {port}\nbind 127.0.0.1\n"
        f"sentinel monitor {MASTER} 127.0.0.1 {master_port} 2\n"
        f"sentinel down-after-milliseconds {MASTER} 500\n"
        f"sentinel failover-timeout {MASTER} 4000\n"
    )
    return subprocess.Popen(
        [executable, str(path), "--sentinel"],
        cwd=path.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _low_port() -> int:
    """A port that leaves room for the cluster's own talk, 10,000 higher."""
    return next(port for port in iter(free_port, None) if port < 55_000)


def _num_known(client: redis.Redis) -> int:
    return len(client.cluster("nodes"))


def _is_cluster_whole(client: redis.Redis) -> bool:
    return client.cluster("info")["cluster_state"] == "ok"


def _has_replica(client: redis.Redis) -> bool:
    return any(
        isinstance(one, dict) and one["state"] == "online"
        for name, one in client.info("replication").items()
        if name.startswith("slave")
    )


def _num_watchers(client: redis.Redis) -> int:
    try:
        state = client.sentinel_master(MASTER)
    except redis.RedisError:
        return -1
    return int(state["num-other-sentinels"]) if state["num-slaves"] == 1 else -1
