"""The settings as people read them: a table of values and origins, and docs/configuration.md."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

from apply_service.config import LoadedSettings, SettingField, format_size, setting_fields

_PASSWORD = re.compile(r"(://[^/@:]*:).*(@)")
_TYPE_NAMES = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
_INTRODUCTION = """\
# Configuration

The service reads each setting from four sources and takes the first value it finds: the command's
flag, the environment variable, the TOML file of `--config`, the default. Setting `kv_memory` has
the flag `--kv-memory` and the variable `APPLY_SERVICE_KV_MEMORY`; the others follow the same rule.
An unknown name is an error. `apply-service config` prints each value with its source;
`apply-service config --markdown` writes this page.

A size is a number of bytes, or has a unit: `KB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`. In the TOML file
settings are top-level keys:

```toml
port = 9000
kv_memory = "1GiB"
```

Six more variables exist:

- `APPLY_SERVICE_URL`: `apply-service apply` uses this server and loads no model.
- `APPLY_API_KEY`: the key that it sends there ([security](security.md)).
- `APPLY_SERVICE_CACHE`: the folder of prepared models.
- `APPLY_CACHE_KEY`: keys that sign values in Redis, as of `cache_key` ([prefix cache](cache.md)).
- `APPLY_JUDGE_API_KEY`: the key that the judge's server is sent ([judge](judge.md)).
- `APPLY_WRITER_API_KEY`: the key that the writer's server is sent ([writer](writer.md)).

| setting | type | default | meaning |
|---|---|---|---|
"""


def format_table(loaded: LoadedSettings) -> str:
    """Name, value and origin of every setting, in columns."""
    rows = [
        (
            field.name,
            shown_value(field, getattr(loaded.settings, field.name)),
            loaded.origins[field.name],
        )
        for field in setting_fields()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "".join(
        f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}\n" for name, value, origin in rows
    )


def format_markdown() -> str:
    """The whole of docs/configuration.md."""
    rows = [
        f"| `{field.name}` | {_type_name(field)} | `{shown_value(field, field.default)}`"
        f" | {field.description} |\n"
        for field in setting_fields()
    ]
    return _INTRODUCTION + "".join(rows)


def shown_value(field: SettingField, value: Any) -> str:
    """A value as people write it, without passwords."""
    if value is None or value == "":
        return "unset"
    if field.is_url:
        return _PASSWORD.sub(r"\1***\2", value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_size(value) if field.is_size else str(value)


def _type_name(field: SettingField) -> str:
    plain = get_args(field.type)[0]
    if field.is_size:
        return "size"
    if get_origin(plain) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(plain))
    members = [member for member in get_args(plain) or (plain,) if member is not type(None)]
    return " or ".join(_TYPE_NAMES[member.__name__] for member in members)
