"""A Ray cluster of one node in processes of its own, and an application deployed to it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

from apply_service.fleet.affinity import AFFINITY_HEADER
from apply_service.fleet.ray_header import HEADER_VARIABLE, PROXY_MIDDLEWARES, PROXY_VARIABLE

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "deploy" / "ray" / "serve.yaml"
_BIN = Path(sys.executable).parent
_OBJECT_STORE_BYTES = 80 << 20
_TOKEN_VARIABLE = "RAY_AUTH_TOKEN"
_START_LIMIT_S = 90.0
_REST_LIMIT_S = 30.0
_LOOK_S = 0.2


class RayCluster:
    """Deploys to a node that was started with `ray start`, and asks it what has become of that."""

    def __init__(
        self, *, api_url: str, address: str, http_port: int, environment: Mapping[str, str]
    ) -> None:
        """`address` is where drivers connect, `http_port` where the application is to listen.

        Drivers need the environment, which has the cluster's token.
        """
        self.url = f"http://127.0.0.1:{http_port}"
        self.address = address
        self.environment = environment
        self._api_url = api_url
        self._http_port = http_port

    def deploy(self, settings: Mapping[str, Any], **deployment: Any) -> None:
        """`serve deploy` the example with other settings and options; wait until it runs."""
        config = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
        config["http_options"].update(host="127.0.0.1", port=self._http_port)
        (application,) = config["applications"]
        application["args"] = dict(settings)
        # Its log shows the texts of nobody, and a line a request is for the replica to write.
        application["logging_config"] = {"enable_access_log": False}
        (options,) = application["deployments"]
        if "num_replicas" in deployment:
            del options["autoscaling_config"]
        options.update({"ray_actor_options": {"num_cpus": 1}, **deployment})
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(config, file)
            file.flush()
            deployed = subprocess.run(
                [_BIN / "serve", "deploy", file.name, "--address", self._api_url],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=dict(self.environment),
            )
            assert deployed.returncode == 0, deployed.stdout
        self._wait_until_running(options.get("num_replicas"))

    def application(self) -> dict[str, Any]:
        """What Serve's REST API says about the application."""
        answer = _ask(self._api_url, self.environment)
        application: dict[str, Any] = answer.raise_for_status().json()["applications"]["apply"]
        return application

    def replicas(self) -> dict[str, int]:
        """The process ids of the replicas that run, by their names."""
        deployment = self.application()["deployments"]["apply"]
        return {
            replica["replica_id"]: replica["pid"]
            for replica in deployment["replicas"]
            if replica["state"] == "RUNNING"
        }

    def workers(self, word: str) -> list[int]:
        """The process ids of this cluster's workers that have the word in their title."""
        token = self.environment[_TOKEN_VARIABLE]
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                title = " ".join(process.cmdline())
                is_named = title.startswith("ray::") and word in title
                if is_named and process.environ().get(_TOKEN_VARIABLE) == token:
                    found.append(process.pid)
        return found

    def wait_for_replicas(self, num_replicas: int, *, other_than: int | None = None) -> None:
        """Wait until so many run, without the process `other_than` among them."""
        deadline = time.monotonic() + _START_LIMIT_S
        while True:
            running = self.replicas().values()
            if len(running) == num_replicas and other_than not in running:
                return
            assert time.monotonic() < deadline, self.application()
            time.sleep(_LOOK_S)

    def _wait_until_running(self, num_replicas: int | None) -> None:
        deadline = time.monotonic() + _START_LIMIT_S
        while (application := self.application())["status"] != "RUNNING":
            assert application["status"] != "DEPLOY_FAILED", application["message"]
            assert time.monotonic() < deadline, application
            time.sleep(_LOOK_S)
        if num_replicas is not None:
            self.wait_for_replicas(num_replicas)


@contextmanager
def ray_cluster(*, num_cpus: int = 4) -> Iterator[RayCluster]:
    """A cluster, ended with all its processes behind the block."""
    ports = _free_ports(6)
    gcs, dashboard, agent, client, runtime_env, http = ports
    environment = {
        # As docs/operations.md has them.
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_SERVE_PROXY_USE_GRPC": "1",
        "RAY_SERVE_ENABLE_DIRECT_INGRESS": "0",
        **os.environ,
        HEADER_VARIABLE: AFFINITY_HEADER.lower(),
        PROXY_VARIABLE: PROXY_MIDDLEWARES,
        "RAY_USAGE_STATS_ENABLED": "0",
        # By default workers give way to everything else on the machine (niceness 15).
        "RAY_worker_niceness": "0",
        "RAY_AUTH_MODE": "token",
        _TOKEN_VARIABLE: secrets.token_hex(32),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    with ExitStack() as stack:
        # Sockets are below it, whose names may not be long.
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True)
        )
        log = stack.enter_context((Path(folder) / "start.log").open("w+b"))
        node = subprocess.Popen(
            [
                *(_BIN / "ray", "start", "--head", "--block", "--disable-usage-stats"),
                *("--node-ip-address", "127.0.0.1", "--num-cpus", str(num_cpus)),
                *("--object-store-memory", str(_OBJECT_STORE_BYTES), "--temp-dir", folder),
                *("--port", str(gcs), "--dashboard-port", str(dashboard)),
                *("--dashboard-agent-listen-port", str(agent)),
                *("--ray-client-server-port", str(client)),
                *("--runtime-env-agent-port", str(runtime_env)),
            ],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        stack.callback(_end, node)
        api_url = f"http://127.0.0.1:{dashboard}"
        deadline = time.monotonic() + _START_LIMIT_S
        while not _is_up(api_url, environment):
            if node.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                raise AssertionError(log.read().decode())
            time.sleep(_LOOK_S)
        yield RayCluster(
            api_url=api_url,
            address=f"127.0.0.1:{gcs}",
            http_port=http,
            environment=environment,
        )


def _is_up(api_url: str, environment: Mapping[str, str]) -> bool:
    try:
        _ask(api_url, environment).raise_for_status()
    except httpx.TransportError:
        return False
    return True


def _ask(api_url: str, environment: Mapping[str, str]) -> httpx.Response:
    return httpx.get(
        f"{api_url}/api/serve/applications/",
        headers={"Authorization": f"Bearer {environment[_TOKEN_VARIABLE]}"},
        timeout=_REST_LIMIT_S,
    )


def _end(node: subprocess.Popen[bytes]) -> None:
    """Kill `ray start --block`, whose reaper then ends all that it has started.

    SIGTERM would give each process half a minute.
    """
    node.kill()
    node.wait()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
