"""The settings as people read them: a table of values and origins, and docs/configuration.md."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

from apply_service.config import LoadedSettings, SettingField, format_size, setting_fields

_PASSWORD = re.compile(r"(://[^/@:]*:).*(@)")
_TYPE_NAMES = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
_INTRODUCTION = """\
# Configuration

A setting is taken from the first place that has it: the flag of the command, the environment, the
TOML file that `--config` names, the default. Unknown names are refused. `apply-service config`
shows every value with the place it came from; `apply-service config --markdown` writes this page.

Sizes are bytes or have a unit: `KB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`. In the TOML file the settings
stand at the top level, under their names:

```toml
port = 9000
kv_memory = "1GiB"
```

More variables are read: `APPLY_SERVICE_URL` is the server that `apply-service apply` uses instead
of loading the model itself, `APPLY_API_KEY` the key that it sends there (see
[security](security.md)), `APPLY_SERVICE_CACHE` the folder of prepared models, and
`APPLY_CACHE_SECRET` what values in Redis are signed with (see [the prefix cache](cache.md)).

| setting | flag | variable | type | default | meaning |
|---|---|---|---|---|---|
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
        f"| `{field.name}` | `{field.flag}` | `{field.variable}` | {_type_name(field)}"
        f" | `{shown_value(field, field.default)}` | {field.description} |\n"
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
