"""Flags win over the environment, the environment over the file, and nothing unknown passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_service.cli.config_docs import format_markdown, format_table
from apply_service.config import (
    ConfigFileError,
    Settings,
    SettingValueError,
    UnknownSettingError,
    format_size,
    load_settings,
    parse_size,
    setting_fields,
)

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults() -> None:
    loaded = load_settings(flags={}, environment={"HOME": "/", "APPLY_SERVICE_URL": "http://x"})
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_order_of_sources(tmp_path: Path) -> None:
    config_path = write(
        tmp_path / "a.toml", 'port = 1\nhost = "h"\nkv_memory = "1GiB"\nthreads = 3'
    )
    loaded = load_settings(
        flags={"port": "3", "host": None},
        environment={"APPLY_SERVICE_PORT": "2", "APPLY_SERVICE_THREADS": "4"},
        config_path=config_path,
    )
    settings = loaded.settings
    assert (settings.port, settings.threads, settings.host) == (3, 4, "h")
    assert settings.kv_memory == 1 << 30
    assert loaded.origins["port"] == "flag --port"
    assert loaded.origins["threads"] == "environment APPLY_SERVICE_THREADS"
    assert loaded.origins["host"] == f"file {config_path}"
    assert loaded.origins["model"] == "default"


def test_unknown_names_come_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownSettingError, match=r"max_runing in .*a.toml; .* is max_running"):
        load_settings(
            flags={}, environment={}, config_path=write(tmp_path / "a.toml", "max_runing = 1")
        )
    with pytest.raises(UnknownSettingError, match=r"APPLY_SERVICE_PROT .* APPLY_SERVICE_PORT"):
        load_settings(flags={}, environment={"APPLY_SERVICE_PROT": "1"})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": "x"}, r"port is 'x' \(flag --port\): .*`int`"),
        ({"port": "70000"}, "port is '70000' .*65535"),
        ({"device": "tpu"}, r"device is 'tpu' .*take auto, cpu, cuda; Where the model runs"),
        ({"kv_memory": "12 parsecs"}, "kv_memory is '12 parsecs' .*KiB"),
        ({"deadline_s": "0"}, "deadline_s is '0'"),
        ({"max_draft_tokens": "257"}, "max_draft_tokens is '257' .*256"),
    ],
)
def test_wrong_values_name_setting_origin_and_limit(flags: dict[str, str], message: str) -> None:
    with pytest.raises(SettingValueError, match=message):
        load_settings(flags=flags, environment={})


def test_the_file_has_types(tmp_path: Path) -> None:
    with pytest.raises(SettingValueError, match=r"port is '1' .*file"):
        load_settings(
            flags={}, environment={}, config_path=write(tmp_path / "a.toml", 'port = "1"')
        )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match=r"No such file .*; name a TOML"):
        load_settings(flags={}, environment={}, config_path=tmp_path / "none.toml")
    with pytest.raises(ConfigFileError, match="not a TOML file"):
        load_settings(flags={}, environment={}, config_path=write(tmp_path / "a.toml", "port ="))


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [("512MiB", 512 << 20), ("4 mb", 4_000_000), ("1.5GiB", 3 << 29), ("7", 7), ("7B", 7)],
)
def test_sizes(text: str, num_bytes: int) -> None:
    assert parse_size(text) == num_bytes


def test_sizes_are_written_exactly() -> None:
    assert [format_size(n) for n in (384 << 20, 4_000_000, 1 << 30, 1001)] == [
        "384MiB",
        "4MB",
        "1GiB",
        "1001",
    ]
    for field in setting_fields():
        if field.is_size and field.default is not None:
            assert parse_size(format_size(field.default)) == field.default


def test_the_table_has_values_and_origins() -> None:
    table = format_table(load_settings(flags={"port": "1"}, environment={}))
    assert len(table.splitlines()) == len(setting_fields())
    assert any(row.split() == ["port", "1", "flag", "--port"] for row in table.splitlines())


def test_docs_are_current() -> None:
    assert DOCS.read_text(encoding="utf-8") == format_markdown()
