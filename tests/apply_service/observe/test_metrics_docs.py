"""docs/metrics.md has every metric of a server that works, and the dashboard asks for no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from oracle_service import OracleService
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from server_thread import serving

DOCS = Path(__file__).parents[3] / "docs"
ROW = re.compile(r"\| `(?P<name>\w+)(?P<labels>(?:\{.+\})?)` \| (?P<type>\w+) \| (?P<text>.+) \|")
LINES = [f"value_{number} = {number}" for number in range(12)]
EDIT = {
    "original": "\n".join(LINES) + "\n",
    "update": "# ... existing code ...\nvalue_11 = 0\n",
    "path": "values.py",
}


@pytest.fixture(scope="module")
def metrics(tiny_model_dir: Path) -> dict[str, Metric]:
    """All families by name after an edit, a problem and a file that is bound to valid merges."""
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer([*LINES[:-1], "value_11 = 0"])
    with serving(oracle.service) as url:
        edit = {**EDIT, "scope": "file"}
        assert httpx.post(f"{url}/v1/apply", json=edit).status_code == 200
        bound = httpx.post(f"{url}/v1/apply", json={**edit, "constraint": "merge"})
        assert bound.json()["confidence"] is not None
        assert httpx.post(f"{url}/v1/apply", json={**EDIT, "update": "x = 1\n"}).status_code < 500
        text = httpx.get(f"{url}/metrics").text
    return {
        family.name + ("_total" if family.type == "counter" else ""): family
        for family in text_string_to_metric_families(text)
        if not family.name.endswith("_created")
    }


def documented() -> dict[str, re.Match[str]]:
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    return {row["name"]: row for row in ROW.finditer(page)}


def test_the_page_has_every_metric_with_its_type_and_meaning(metrics: dict[str, Metric]) -> None:
    written = {name: (row["type"], row["text"]) for name, row in documented().items()}
    assert written == {
        name: (family.type, family.documentation) for name, family in metrics.items()
    }


def test_the_page_has_the_labels(metrics: dict[str, Metric]) -> None:
    rows = documented()
    num_seen = 0
    for name, family in metrics.items():
        for sample in family.samples:
            labels = set(sample.labels) - {"le"}
            assert labels == set(re.findall(r"\w+", rows[name]["labels"])), name
            num_seen += 1
    assert num_seen > len(metrics)


def test_the_dashboard_asks_only_for_metrics_that_exist(metrics: dict[str, Metric]) -> None:
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    queries = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    assert len(queries) > 30
    for query in queries:
        names = re.findall(r"\b(?:apply|process)_\w+", query)
        assert names, query
        for name in names:
            plain = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in metrics or metrics[plain].type == "histogram", name
        grouped = re.findall(r"by \(([^)]*)\)", query)
        labels = {label.strip() for group in grouped for label in group.split(",")} - {"le"}
        documented_labels = documented()[names[0] if names[0] in metrics else plain]["labels"]
        assert labels <= set(re.findall(r"\w+", documented_labels)), query


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
