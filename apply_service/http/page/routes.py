"""The addresses of the page: `/`, `/docs` and the files below `/page`.

All links of the page are relative, so that it works below any root path.
"""

from __future__ import annotations

import secrets
from typing import Any

from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from apply_service.http.page.page_files import PageFile, PageFiles

# In the documents, where the nonce of one answer goes.
_NONCE = b"{{nonce}}"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{nonce}; connect-src 'self';"
    " img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_NOT_BUILT = """The page of this server has not been built.

Run `make page` in the source of the server; it needs npm. The API works without the page:
GET /schema/openapi.json describes it.
"""

_Request = Request[Any, Any, Any]


@get("/", include_in_schema=False)
async def show_page(request: _Request, page: NamedDependency[PageFiles]) -> Response[bytes]:
    """The page itself."""
    path = _path_as_sent(request)
    if not path.endswith("/"):
        # A root path without its slash: relative links would lead beside it.
        return _redirect(path.rpartition("/")[2] + "/")
    return _document(page.try_read("index.html"))


@get("/docs", include_in_schema=False)
async def show_docs(request: _Request, page: NamedDependency[PageFiles]) -> Response[bytes]:
    """The description of the API, to read and to try."""
    if _path_as_sent(request).endswith("/"):
        return _redirect("../docs")
    return _document(page.try_read("docs.html"))


@get("/page/{name:str}", include_in_schema=False)
async def send_page_file(
    name: FromPath[str], request: _Request, page: NamedDependency[PageFiles]
) -> Response[bytes]:
    """A script, style sheet or picture; browsers ask whether theirs is still the same."""
    file = None if name.endswith(".html") else page.try_read(name)
    if file is None:
        return _text(404, _NOT_BUILT if page.try_read("index.html") is None else "No such file.\n")
    is_compressed = _takes_gzip(request.headers.get("accept-encoding", ""))
    etag = f'"{file.digest}{"-gzip" if is_compressed else ""}"'
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": _POLICY.format(nonce=""),
        "ETag": etag,
        "Vary": "Accept-Encoding",
    }
    if _has_etag(request.headers.get("if-none-match", ""), etag):
        return Response(b"", status_code=304, headers=headers)
    if is_compressed:
        headers["Content-Encoding"] = "gzip"
    content = file.compressed if is_compressed else file.content
    return Response(content, media_type=file.content_type, headers=headers)


PAGE_ROUTES = (show_page, show_docs, send_page_file)


def _document(file: PageFile | None) -> Response[bytes]:
    """An HTML document with a nonce of its own, which the editor's style sheets carry."""
    if file is None:
        return _text(404, _NOT_BUILT)
    nonce = secrets.token_urlsafe(18)
    return Response(
        file.content.replace(_NONCE, nonce.encode()),
        media_type=file.content_type,
        headers={"Content-Security-Policy": _POLICY.format(nonce=f" 'nonce-{nonce}'")},
    )


def _text(status: int, text: str) -> Response[bytes]:
    return Response(text.encode(), status_code=status, media_type="text/plain")


def _redirect(location: str) -> Response[bytes]:
    return Response(b"", status_code=308, headers={"Location": location})


def _path_as_sent(request: _Request) -> str:
    """The path before a root path was taken from it."""
    return (request.scope.get("raw_path") or request.scope["path"].encode()).decode("latin-1")


def _takes_gzip(accepted: str) -> bool:
    """True unless gzip is missing from Accept-Encoding, or refused there."""
    codings = (coding.replace(" ", "").lower() for coding in accepted.split(","))
    return any(coding.split(";")[0] == "gzip" and not coding.endswith(";q=0") for coding in codings)


def _has_etag(sent: str, etag: str) -> bool:
    """True if If-None-Match names this tag; proxies may have made it a weak one."""
    tags = [tag.strip().removeprefix("W/") for tag in sent.split(",")]
    return etag in tags or "*" in tags
