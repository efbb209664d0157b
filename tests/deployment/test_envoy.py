"""Envoy's configuration fits the types that Envoy reads it into, and says what the docs promise."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.json_format import ParseDict, ParseError

from apply_service.config import Settings
from apply_service.fleet.affinity import AFFINITY_HEADER

FILE = Path(__file__).parents[2] / "deploy" / "balancers" / "envoy.yaml"
# Modules that know the types which the file names by "@type".
EXTENSIONS = [
    "envoy.extensions.filters.http.router.v3.router_pb2",
    "envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2",
    "envoy.extensions.retry.host.previous_hosts.v3.previous_hosts_pb2",
]


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return loaded


def parse(configuration: dict[str, Any]) -> Any:
    """What Envoy makes of it. Raises ParseError for a field or a type that it does not have."""
    for name in EXTENSIONS:
        import_module(name)
    bootstrap = import_module("envoy.config.bootstrap.v3.bootstrap_pb2").Bootstrap()
    return ParseDict(configuration, bootstrap)


def test_it_fits_the_types_of_envoy(configuration: dict[str, Any]) -> None:
    resources = parse(configuration).static_resources

    (cluster,) = resources.clusters
    assert cluster.lb_policy == cluster.RING_HASH
    assert len(cluster.load_assignment.endpoints[0].lb_endpoints) == 2
    (listener,) = resources.listeners
    assert listener.name == "edits"


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (("clusters", 0, "lb_policy"), "RING_HASCH"),
        (("clusters", 0, "ring_hash_lb_config"), {"minimum_rings": 1024}),
        (("clusters", 0, "health_checks", 0, "timeout"), "2 seconds"),
        (
            ("listeners", 0, "filter_chains", 0, "filters", 0, "typed_config", "route_configs"),
            {},
        ),
    ],
)
def test_a_wrong_name_or_value_is_found(
    configuration: dict[str, Any], place: tuple[str | int, ...], wrong: object
) -> None:
    changed = deepcopy(configuration)
    target = changed["static_resources"]
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = wrong

    with pytest.raises(ParseError):
        parse(changed)


def test_it_hashes_the_header_and_tries_once_more(configuration: dict[str, Any]) -> None:
    (listener,) = configuration["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    route = manager["route_config"]["virtual_hosts"][0]["routes"][0]["route"]

    assert route["hash_policy"] == [{"header": {"header_name": AFFINITY_HEADER.lower()}}]
    assert route["retry_policy"]["num_retries"] == 1
    assert float(route["timeout"].removesuffix("s")) > Settings().max_deadline_s
