"""Flags of benches that run the pipeline here, and how flags become options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from apply_service.evaluate.edit_session import SessionOptions

Options = TypeVar("Options")


def add_session_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `SessionOptions`."""
    group = parser.add_argument_group("settings", "as for `apply-service serve`")
    group.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
    group.add_argument("--model", default=None, help="model name or folder")
    group.add_argument("--profile", default=None, help="prompt profile, by default the model's")
    group.add_argument("--dtype", default=None, help="number format of the weights")
    group.add_argument("--threads", default=None, help="CPU threads of the model")


def session_of(args: argparse.Namespace) -> SessionOptions:
    """The session that the flags of `add_session_flags` ask for."""
    return options_of(SessionOptions, args)


def options_of(kind: type[Options], args: argparse.Namespace, **others: Any) -> Options:
    """A dataclass whose fields are named as the flags are, except `others`."""
    values: Mapping[str, Any] = vars(args) | others
    return kind(**{field.name: values[field.name] for field in fields(kind)})  # type: ignore[arg-type]
