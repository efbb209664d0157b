"""One Ray node for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.fleet.ray_cluster import RayCluster, ray_cluster


@pytest.fixture(scope="package")
def ray_node() -> Iterator[RayCluster]:
    with ray_cluster(num_cpus=6) as cluster:
        yield cluster
