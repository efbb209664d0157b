"""What can be known of the Dockerfile and compose.yaml without Docker."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from apply_service.config import CACHE_KEY_VARIABLE, OTHER_VARIABLES, setting_fields

ROOT = Path(__file__).parents[2]
KNOWN_VARIABLES = {field.variable for field in setting_fields()} | OTHER_VARIABLES
STAGE = re.compile(r"FROM (?P<base>\S+) AS (?P<name>\S+)")


def instructions() -> list[str]:
    """One string for each instruction, continued lines joined and comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in joined.splitlines() if line.strip()]


def stages() -> dict[str, list[str]]:
    """The instructions of each stage, in order."""
    found: dict[str, list[str]] = {}
    for instruction in instructions():
        match = STAGE.fullmatch(instruction)
        if match is not None:
            found[match["name"]] = [instruction]
        elif found:
            found[list(found)[-1]].append(instruction)
    return found


def lineage(name: str) -> list[str]:
    """All instructions that make a stage, those of its bases first."""
    own = stages()[name]
    base = STAGE.fullmatch(own[0])
    assert base is not None
    return [*(lineage(base["base"]) if base["base"] in stages() else []), *own]


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets a path into the build: the last pattern that fits decides."""
    is_ignored = False
    for pattern in (ROOT / ".dockerignore").read_text(encoding="utf-8").split():
        plain = pattern.removeprefix("!")
        if plain == "**" or fnmatch.fnmatch(path, plain) or path.startswith(f"{plain}/"):
            is_ignored = not pattern.startswith("!")
    return not is_ignored


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def test_every_stage_begins_with_one_that_exists() -> None:
    known = list(stages())
    for place, name in enumerate(known):
        base = STAGE.fullmatch(stages()[name][0])
        assert base is not None
        assert base["base"] in ("${PYTHON_IMAGE}", "${NODE_IMAGE}", *known[:place])
        for copied in re.findall(r"--from=(\S+)", " ".join(stages()[name])):
            assert copied in known[:place]


def test_what_is_copied_exists_and_is_sent_to_the_build() -> None:
    copied = []
    for instruction in instructions():
        if instruction.startswith("COPY ") and "--from" not in instruction:
            copied += instruction.split()[1:-1]
    assert copied
    for path in copied:
        assert (ROOT / path).exists(), path
        assert is_sent(path), path
    for path in (
        *("tests/conftest.py", ".git/config", "build/cases/test.jsonl", "docs/cache.md"),
        *("clients/page/node_modules/esbuild/bin", "apply_service/http/page/static/page.js"),
    ):
        assert not is_sent(path), path


def test_the_page_that_the_image_builds_goes_into_the_package() -> None:
    copied = "COPY --from=page /src/apply_service/http/page/static ./apply_service/http/page/static"
    for name in ("cpu-packages", "cuda-packages"):
        lines = stages()[name]
        assert lines.index("COPY apply_service ./apply_service") < lines.index(copied)
        assert lines.index(copied) < max(
            place for place, line in enumerate(lines) if "pip install" in line
        )


def test_the_wheel_finds_what_its_metadata_names() -> None:
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.search(r"license-files = \[(.*)\]", metadata)
    assert named is not None
    for path in (*re.findall(r'"(.+?)"', named[1]), "README.md"):
        assert is_sent(path)
        assert any(path in line.split() for line in instructions() if line.startswith("COPY"))


def test_packages_are_pinned() -> None:
    installs = [line for line in instructions() if "pip install" in line]
    assert installs
    for line in installs:
        assert line.count("pip install") == line.count("--constraint constraints.txt")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_target_runs_without_root_and_says_whether_it_is_ready(target: str) -> None:
    lines = lineage(target)
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users[-1] not in ("root", "0")
    assert lines.index(f"USER {users[-1]}") == len(lines) - 1
    assert any(line.startswith("HEALTHCHECK") and "/health/ready" in line for line in lines)
    assert 'CMD ["apply-service", "serve"]' in lines
    assert f"COPY --from={target}-packages /opt/venv /opt/venv" in lines


def test_the_last_target_is_the_one_for_cpus() -> None:
    assert list(stages())[-1] == "cpu"


def test_variables_are_ones_that_are_read() -> None:
    written = re.findall(r"\b(APPLY_SERVICE_\w+)", " ".join(instructions()))
    for service in compose()["services"].values():
        environment = service.get("environment", {})
        written += [name for name in environment if name != CACHE_KEY_VARIABLE]
    assert len(set(written)) >= 4
    assert set(written) <= KNOWN_VARIABLES


def test_compose_has_a_bounded_redis_that_only_the_service_reaches() -> None:
    services, networks = compose()["services"], compose()["networks"]
    redis = services["redis"]
    command = redis["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "allkeys-lru"
    assert "--maxmemory" in command
    assert "--requirepass" in command
    assert "ports" not in redis
    assert all(networks[name]["internal"] for name in redis["networks"])
    password = command[command.index("--requirepass") + 1]
    assert password in services["apply"]["environment"]["APPLY_SERVICE_REDIS_URL"]


def test_compose_builds_targets_that_exist_and_opens_loopback_alone() -> None:
    for name in ("apply", "apply-cuda"):
        service = compose()["services"][name]
        assert service["build"]["target"] in stages()
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
