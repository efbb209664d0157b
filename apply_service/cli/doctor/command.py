"""`apply-service doctor`: runs all checks in order and prints them, for people or as JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from apply_service.cli.config_docs import shown_value
from apply_service.cli.doctor.check import Check, skipped
from apply_service.cli.doctor.package_checks import check_grammars, check_packages, check_python
from apply_service.config import LoadedSettings, Settings, setting_fields
from apply_service.observe.progress import Progress
from apply_service.shown_text import shown

EXIT_OK, EXIT_ERROR = 0, 1
_DEFAULT = "default"


def add_doctor_command(subparsers: Any) -> argparse.ArgumentParser:
    """Register `doctor`; the settings it looks at are those that `serve` would have."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "doctor",
        usage="%(prog)s [--quick] [--json] [flags]",
        help="check that everything is in place to serve",
        description="Looks at packages, device, memory, model, folders, port and Redis as `serve`"
        " would find them, and merges an example. Ends with 0 if nothing is broken (warnings"
        " included), 1 if something is, 2 if a setting is wrong.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--quick", action="store_true", help="neither hash unchanged files nor load the model"
    )
    return parser


def run_doctor(args: argparse.Namespace, loaded: LoadedSettings) -> int:
    """Print every check as it is done; the exit code."""
    progress = Progress(sys.stderr)
    checks = []
    for check in _checks(loaded, progress, is_quick=args.quick):
        progress.clear()
        checks.append(check)
        if not args.json:
            print(shown(_format(check)), flush=True)
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(_report(checks, loaded), indent=2) + b"\n")
    else:
        print(shown(_settings_lines(loaded)), end="")
        print(_summary(checks))
    return EXIT_ERROR if _count(checks, "error") else EXIT_OK


def _checks(loaded: LoadedSettings, progress: Progress, *, is_quick: bool) -> Iterator[Check]:
    yield check_python()
    packages = check_packages()
    yield packages
    yield check_grammars()
    if packages.status == "error":
        yield skipped("the rest", "its packages are not installed")
        return
    # Only now is it known that these can be imported.
    from apply_service.cli.doctor.place_checks import check_access, check_folder, check_port
    from apply_service.cli.doctor.redis_checks import check_redis
    from apply_service.cli.doctor.self_test import check_merge

    yield check_folder()
    yield check_port(loaded.settings)
    yield check_access(loaded.settings)
    yield from check_redis(loaded.settings)
    yield check_merge(loaded.settings)
    yield from _model_checks(loaded.settings, progress, is_quick=is_quick)


def _model_checks(settings: Settings, progress: Progress, *, is_quick: bool) -> Iterator[Check]:
    """The model and the machine that is to run it."""
    from apply_service.cli.doctor.machine_checks import check_device, check_memory
    from apply_service.cli.doctor.model_checks import check_adapter, check_context, check_model
    from apply_service.cli.doctor.self_test import check_merge_with_model

    progress.show_stage("hashing the model")
    model_check, model = check_model(settings, is_verified=not is_quick)
    yield model_check
    adapter_check = check_adapter(model)
    if adapter_check is not None:
        yield adapter_check
    progress.show_stage("importing torch")
    yield check_device(settings)
    yield check_memory(settings, model)
    if model is None:
        yield skipped("model merge", "there is no model")
        return
    yield check_context(settings, model)
    if is_quick:
        yield skipped("model merge", "left out by --quick")
    else:
        yield from check_merge_with_model(settings, progress)


def _format(check: Check) -> str:
    line = f"{check.status:<8} {check.name:<12} {check.text}"
    return line if check.remedy is None else f"{line}\n{'':<22}→ {check.remedy}"


def _settings_lines(loaded: LoadedSettings) -> str:
    """The settings that somebody set."""
    rows = [
        f"{'setting':<8} {field.name} = {shown_value(field, getattr(loaded.settings, field.name))}"
        f" ({loaded.origins[field.name]})\n"
        for field in setting_fields()
        if loaded.origins[field.name] != _DEFAULT
    ]
    return "".join(rows)


def _summary(checks: list[Check]) -> str:
    num_errors, num_warnings = _count(checks, "error"), _count(checks, "warning")
    if not num_errors and not num_warnings:
        return "all is well"
    return f"errors: {num_errors}, warnings: {num_warnings}"


def _count(checks: list[Check], status: str) -> int:
    return sum(check.status == status for check in checks)


def _report(checks: list[Check], loaded: LoadedSettings) -> bytes:
    settings = {
        field.name: {
            "value": shown_value(field, getattr(loaded.settings, field.name)),
            "origin": loaded.origins[field.name],
        }
        for field in setting_fields()
    }
    is_healthy = not _count(checks, "error")
    return msgspec.json.encode({"healthy": is_healthy, "checks": checks, "settings": settings})
