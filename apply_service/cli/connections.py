"""What `apply-service` says without a command, and how `up` shows where to point clients."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

from apply_service.config import Settings

INTRODUCTION = """\
apply-service merges the edit of a coding agent into a file, and says whether to trust it.

  apply-service up                          start a server, and show how to connect to it
  apply-service apply FILE < update.txt     merge one update here; add --diff, --write or --check
  apply-service undo                        take the last --write back
  apply-service bench accuracy --git .      measure it on your own code
  apply-service doctor                      check that everything is in place
  apply-service --help                      all commands

An update is changed code with markers such as `# ... existing code ...`, a diff, or a patch.
"""


def prepare_and_show(settings: Settings, listener: socket.socket) -> None:
    """Have the model ready, and print how to connect.

    Raises ModelStoreError, ModelLoadError or KeyFileError.
    """
    from apply_service.http.guard.from_settings import key_file_of
    from apply_service.http.page.page_files import PageFiles
    from apply_service.http.server.listener import url_of
    from apply_service.models.store import EMBEDDED_NAME, open_store
    from apply_service.observe.progress import Progress

    # Fetching and merging a model take a while; a server would log them and nothing else.
    progress = Progress(sys.stderr)
    store = open_store(progress.show_stage, progress.show_share)
    try:
        if settings.model == EMBEDDED_NAME:
            store.prepare_embedded()
        else:
            store.resolve(settings.model, settings.revision)
    finally:
        progress.clear()
    needs_key = bool(key_file_of(settings).read())
    has_page = PageFiles().try_read("index.html") is not None
    lines = connection_lines(url_of(listener), needs_key=needs_key, has_page=has_page)
    print("\n".join(lines), flush=True)


def connection_lines(url: str, *, needs_key: bool, has_page: bool) -> Iterator[str]:
    """A line for each kind of client."""
    yield f"apply-service listens at {url}; Ctrl-C ends it."
    yield ""
    if has_page:
        yield f"  a browser              {url}/ has a page to try edits on"
    yield f"  OpenAI's packages      base_url {url}/v1"
    yield f"  Anthropic's packages   base_url {url}"
    yield f"  Morph's SDK            morphApiUrl {url}"
    yield f"  this command line      APPLY_SERVICE_URL={url} apply-service apply FILE < update.txt"
    yield f"  agents (MCP)           apply-client mcp --root PROJECT --url {url}"
    yield f"  editors (LSP)          APPLY_SERVICE_URL={url} apply-service lsp"
    yield f"  anything else          POST {url}/v1/apply; {url}/schema has every field"
    yield ""
    key = "a key: `apply-service key create --name NAME`" if needs_key else "no key"
    yield f"It asks for {key}. Edits that need no model are answered at once."
