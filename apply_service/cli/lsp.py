"""`apply-service lsp`: a language server on stdin and stdout, for editors."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec

import msgspec

from apply_service.apply.errors import UsageError
from apply_service.cli.answer import URL_VARIABLE, answer_edit
from apply_service.config import Settings
from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.observe.progress import Progress


def run_lsp(settings: Settings, environment: Mapping[str, str]) -> int:
    """Serve until the editor leaves; the exit code. Raises UsageError without pygls.

    With a server's address in the environment it answers the edits. Without one they are merged
    here, without a model: none is loaded for each of them.
    """
    if find_spec("pygls") is None:
        raise UsageError("the language server needs pygls; install 'apply-service[service,lsp]'")
    from apply_service.lsp.clipboard import read_clipboard
    from apply_service.lsp.server import make_server

    if not environment.get(URL_VARIABLE):
        settings = msgspec.structs.replace(settings, use_model="never")

    def ask(body: ApplyBody) -> ApplyResult | Problem:
        return answer_edit(body, settings, environment, Progress(sys.stderr))

    server = make_server(
        ask,
        read_clipboard=read_clipboard,
        max_file_bytes=settings.max_file_bytes,
        version=version("apply-service"),
    )
    server.start_io()
    return 0
