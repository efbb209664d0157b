"""The manifests: kustomize builds each overlay, and every object fits the schema of Kubernetes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from apply_service.config import setting_fields

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
PLACES = ["base", *sorted(f"overlays/{path.name}" for path in (FOLDER / "overlays").iterdir())]
VERSION = "1.33"
# Resources of operators, whose schemas are not part of Kubernetes.
OF_OPERATORS = {"ServiceMonitor", "ScaledObject"}

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")


def objects_of(place: str) -> list[dict[str, Any]]:
    built = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER / place)], check=True, capture_output=True, text=True
    )
    return list(yaml.safe_load_all(built.stdout))


@pytest.mark.parametrize("place", PLACES)
def test_every_object_fits_its_schema(place: str) -> None:
    kinds = set()
    for one in objects_of(place):
        kinds.add(one["kind"])
        if one["kind"] not in OF_OPERATORS:
            kubernetes_validate.validate(one, VERSION, strict=True)
    assert {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"} <= kinds


@pytest.mark.parametrize("place", PLACES)
def test_no_container_has_more_rights_than_it_needs(place: str) -> None:
    pods = [
        one["spec"]["template"]["spec"] for one in objects_of(place) if one["kind"] == "Deployment"
    ]
    assert len(pods) == 2
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"] is True
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["capabilities"]["drop"] == ["ALL"]
            assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("place", PLACES)
def test_what_names_something_names_what_is_there(place: str) -> None:
    objects = objects_of(place)
    pods = [one["spec"]["template"] for one in objects if one["kind"] == "Deployment"]
    labels = [pod["metadata"]["labels"].items() for pod in pods]
    known = {field.variable for field in setting_fields()} | {"REDIS_PASSWORD"}
    for pod in pods:
        for container in pod["spec"]["containers"]:
            assert {variable["name"] for variable in container.get("env", [])} <= known
    for one in objects:
        spec = one["spec"]
        if one["kind"] == "Service":
            assert any(spec["selector"].items() <= pod for pod in labels)
        if one["kind"] in ("NetworkPolicy", "PodDisruptionBudget"):
            selector = spec.get("podSelector") or spec["selector"]
            assert any(selector["matchLabels"].items() <= pod for pod in labels)
