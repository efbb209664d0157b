"""The command line, `apply-service COMMAND`."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from apply_service.apply.errors import DiskFullError, UsageError
from apply_service.cli.completion import add_completion_command, print_completion
from apply_service.cli.manual import add_manual_command, print_manual
from apply_service.cli.standard_streams import drop_output, prepare_streams
from apply_service.cli.suggesting_parser import ShowVersion, SuggestingParser
from apply_service.config import (
    ConfigError,
    LoadedSettings,
    SettingField,
    Settings,
    load_settings,
    setting_fields,
)
from apply_service.models.torch_environment import set_torch_defaults
from apply_service.shown_text import say

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130

# Settings of a model and its engine.
_MODEL_SETTINGS = frozenset(
    {
        "model",
        "revision",
        "profile",
        "device",
        "dtype",
        "kv_memory",
        "threads",
        "cache_memory",
        "redis_url",
        "cache_chunk_tokens",
        "cache_payload",
        "cache_timeout_s",
        "cache_ttl_s",
        "cache_key",
        "max_tokens_per_step",
        "max_draft_tokens",
        "draft_budget",
        "row_grouping",
    }
)
# Settings that mean something to one edit without a server.
_APPLY_SETTINGS = _MODEL_SETTINGS | {
    "use_model",
    "on_doubt",
    "judge_url",
    "judge_model",
    "judge_accuracy",
    "judge_timeout_s",
    "writer_url",
    "writer_model",
    "writer_accuracy",
    "writer_timeout_s",
    "max_file_bytes",
}
# Settings of a batch without a server.
_BATCH_SETTINGS = _APPLY_SETTINGS | {
    "in_process",
    "engine_socket",
    "max_running",
    "max_waiting",
    "text_workers",
    "batch_deadline_s",
    "max_batch_in_flight",
    "log_level",
    "log_format",
    "log_text",
}
# Settings of an engine that has no server of its own.
_ENGINE_SETTINGS = _MODEL_SETTINGS | {
    "engine_socket",
    "max_running",
    "max_waiting",
    "drain_s",
    "log_level",
    "log_format",
    "log_text",
}
# Of a command whose flags are the settings; `--help` lists them.
_USAGE = "%(prog)s [flags]"
_PLUGGED_COMMANDS = {
    "key": "create, list and revoke API keys",
    "model": "prepare, list, inspect and remove models",
    "cache": "count or clear the prompts in Redis",
    "plan": "how many replicas a load needs, and what they cost",
    "bench": "measure accuracy, latency and settings on your own code",
}
_BENCHES = {
    "accuracy": "how often the merged file is right, and how often it says so",
    "latency": "time whole edits: without a model, cold, and with the prompt cached",
    "tune": "find the settings that suit your cases and machine",
    "judge": "how often a judge is right about doubts, and what it is worth",
    "writer": "how often a writer is right about doubts, and what it is worth",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        return run_to_exit_code(_introduce)
    return run_to_exit_code(lambda: _run(build_parser(arguments).parse_args(arguments), os.environ))


def _introduce() -> int:
    from apply_service.cli.connections import INTRODUCTION

    print(INTRODUCTION, end="")
    return EXIT_OK


def run_to_exit_code(run: Callable[[], int]) -> int:
    """Run a command with the environment that torch needs; say what went wrong on stderr."""
    set_torch_defaults(os.environ)
    prepare_streams()
    try:
        code = run()
        if not sys.stdout.closed:  # the language server leaves it so
            sys.stdout.flush()
        return code
    except (ConfigError, UsageError) as error:
        return _fail(error, EXIT_USAGE)
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        drop_output()
        return EXIT_ERROR
    except Exception as error:
        if _is_interrupt(error):
            return _interrupted()
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            drop_output()
            error = DiskFullError(f"{error}; make room and run the command again")
        if not _is_foreseen(error):
            say(traceback.format_exc(), end="")
        return _fail(error, EXIT_ERROR)


def build_parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; those that import much are whole only when asked for.

    With None all are.
    """
    parser = SuggestingParser(
        prog="apply-service",
        description="Merges lazy edits of coding agents into files and says whether to trust the"
        " result.",
    )
    parser.add_argument("--version", action=ShowVersion)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = subparsers.add_parser("serve", usage=_USAGE, help="serve edits over HTTP")
    _add_setting_flags(serve, setting_fields())
    up = subparsers.add_parser(
        "up", usage=_USAGE, help="prepare the model, serve, and show how to connect"
    )
    _add_setting_flags(up, setting_fields())
    engine = subparsers.add_parser(
        "engine", usage=_USAGE, help="serve one engine to several servers of this machine"
    )
    _add_setting_flags(
        engine, [field for field in setting_fields() if field.name in _ENGINE_SETTINGS]
    )
    _add_apply_command(subparsers)
    subparsers.add_parser("undo", help="take the last apply --write back, if nobody wrote since")
    lsp = subparsers.add_parser(
        "lsp", usage=_USAGE, help="a language server on stdin and stdout, for editors"
    )
    _add_setting_flags(lsp, [field for field in setting_fields() if field.name in _APPLY_SETTINGS])
    _add_batch_command(subparsers, arguments)
    if _is_wanted("doctor", arguments):
        from apply_service.cli.doctor.command import add_doctor_command

        _add_setting_flags(add_doctor_command(subparsers), setting_fields())
    else:
        subparsers.add_parser("doctor", help="check that everything is in place to serve")
    config = subparsers.add_parser(
        "config", usage=_USAGE, help="show the settings and where they come from"
    )
    pages = config.add_mutually_exclusive_group()
    pages.add_argument("--markdown", action="store_true", help="write docs/configuration.md")
    pages.add_argument("--openapi", action="store_true", help="write docs/openapi.json")
    _add_setting_flags(config, setting_fields())
    for name, text in _PLUGGED_COMMANDS.items():
        if _is_wanted(name, arguments):
            _add_plugged_command(subparsers, name, arguments and arguments[1:])
        else:
            subparsers.add_parser(name, help=text)
    add_completion_command(subparsers)
    add_manual_command(subparsers)
    return parser


def _is_wanted(name: str, arguments: Sequence[str] | None) -> bool:
    return arguments is None or [name] == list(arguments[:1])


def _run(args: argparse.Namespace, environment: Mapping[str, str]) -> int:
    # Each command imports its own world: torch for the model, the web framework for the server.
    if args.command == "model":
        from apply_service.cli.model import run_model_command

        return int(run_model_command(args))
    if args.command == "plan":
        from apply_service.cli.plan import run_plan

        return run_plan(args)
    if args.command == "bench":
        return int(_bench_function("run", args.bench)(args))
    if args.command == "config" and args.markdown:
        from apply_service.cli.config_docs import format_markdown

        sys.stdout.write(format_markdown())
        return EXIT_OK
    if args.command == "config" and args.openapi:
        from apply_service.http.app import service_document

        print(json.dumps(service_document(), indent=1))
        return EXIT_OK
    if args.command == "completion":
        print_completion(build_parser(), args.shell)
        return EXIT_OK
    if args.command == "man":
        print_manual(build_parser())
        return EXIT_OK
    if args.command == "undo":
        from apply_service.cli.undo import run_undo

        return run_undo()
    loaded = _load_settings(args, environment)
    if args.command == "config":
        from apply_service.cli.config_docs import format_table

        sys.stdout.write(format_table(loaded))
        return EXIT_OK
    if args.command == "doctor":
        from apply_service.cli.doctor.command import run_doctor

        return run_doctor(args, loaded)
    if args.command == "cache":
        from apply_service.cli.cache import run_cache_command

        return run_cache_command(args, loaded.settings.redis_url)
    if args.command == "key":
        from apply_service.cli.key import run_key_command

        return run_key_command(args, loaded.settings.keys_file)
    if args.command == "batch":
        from apply_service.cli.batch import run_batch

        return run_batch(args, loaded.settings)
    if args.command == "apply":
        from apply_service.cli.applying.command import run_apply

        return run_apply(args, loaded.settings, environment)
    if args.command == "lsp":
        from apply_service.cli.lsp import run_lsp

        return run_lsp(loaded.settings, environment)
    if args.command == "engine":
        from apply_service.cli.engine import run_engine

        return run_engine(loaded.settings)
    return _serve(loaded.settings, shows_clients=args.command == "up")


def _serve(settings: Settings, *, shows_clients: bool) -> int:
    from apply_service.http.server.listener import listen
    from apply_service.http.server.process import check_single_process
    from apply_service.models.cache_keys import read_cache_keys
    from batching.cache.redis.url import parse_redis_url

    check_single_process(settings.workers, os.environ)
    if settings.in_process and settings.engine_socket is not None:
        raise UsageError("in_process and engine_socket exclude each other; leave one out")
    if settings.redis_url is not None:
        parse_redis_url(settings.redis_url)  # a wrong one is said before the model is loaded
        read_cache_keys(settings, os.environ)
    with listen(settings.host, settings.port) as listener:
        announce = None
        if shows_clients:
            from apply_service.cli.connections import prepare_and_show

            announce = partial(prepare_and_show, settings, listener)
        from apply_service.cli.serve import serve

        return serve(settings, listener, announce=announce)


def _bench_function(verb: str, name: str) -> Any:
    """`add_NAME_command` or `run_NAME_command`; their imports are loaded only when asked for."""
    return getattr(import_module("apply_service.cli.bench"), f"{verb}_{name}_command")


def _add_apply_command(subparsers: Any) -> None:
    from apply_service.cli.applying.command import add_apply_command

    parser = add_apply_command(subparsers)
    fields = [field for field in setting_fields() if field.name in _APPLY_SETTINGS]
    _add_setting_flags(parser, fields)


def _add_batch_command(subparsers: Any, arguments: Sequence[str] | None) -> None:
    text = "many edits without a server, on this machine or on Ray"
    if not _is_wanted("batch", arguments):
        subparsers.add_parser("batch", help=text)
        return
    from apply_service.cli.batch import __doc__ as description
    from apply_service.cli.batch import add_batch_arguments

    batch = subparsers.add_parser("batch", help=text, description=description)
    add_batch_arguments(batch)
    _add_setting_flags(batch, [one for one in setting_fields() if one.name in _BATCH_SETTINGS])


def _add_plugged_command(subparsers: Any, command: str, arguments: Sequence[str] | None) -> None:
    if command == "model":
        from apply_service.cli.model import add_model_commands

        add_model_commands(subparsers)
        return
    if command == "key":
        from apply_service.cli.key import add_key_commands

        add_key_commands(subparsers)
        return
    if command == "plan":
        from apply_service.cli.plan import add_plan_command

        add_plan_command(subparsers)
        return
    if command == "cache":
        from apply_service.cli.cache import add_cache_commands

        add_cache_commands(subparsers)
        return
    parser = subparsers.add_parser("bench", help=_PLUGGED_COMMANDS["bench"])
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    for name, text in _BENCHES.items():
        if _is_wanted(name, arguments):
            _bench_function("add", name)(benches)
        else:
            benches.add_parser(name, help=text)


def _add_setting_flags(parser: argparse.ArgumentParser, fields: Sequence[SettingField]) -> None:
    group = parser.add_argument_group("settings")
    group.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
    for field in fields:
        description = field.description.replace("%", "%%")
        # What is true or false need not be said in full: `--allow-anonymous`.
        is_switch = isinstance(field.default, bool)
        group.add_argument(
            field.flag,
            dest=field.name,
            metavar="VALUE",
            help=description,
            nargs="?" if is_switch else None,
            const="true" if is_switch else None,
        )


def _load_settings(args: argparse.Namespace, environment: Mapping[str, str]) -> LoadedSettings:
    flags = {field.name: getattr(args, field.name, None) for field in setting_fields()}
    return load_settings(flags=flags, environment=environment, config_path=args.config)


def _is_foreseen(error: Exception) -> bool:
    """Errors of our own say all there is to say; the others are mistakes that need their trace.

    Those of a benchmark are kinds of ours.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return not packages.isdisjoint(("apply_service", "batching"))


def _is_interrupt(error: BaseException | None) -> bool:
    """True if Ctrl-C is behind an error; some libraries turn it into one of their imports."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _interrupted() -> int:
    say("interrupted")
    return EXIT_INTERRUPTED


def _fail(error: Exception, exit_code: int) -> int:
    say(f"apply-service: {error or type(error).__name__}")
    return exit_code
