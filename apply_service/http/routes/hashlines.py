"""`POST /v1/hashlines`: the lines of a file by the names that edits give them."""

import asyncio

from litestar import post
from litestar.params import JSONBody

from apply_service.edit.forms.line_edits import hashed_line
from apply_service.edit.text.text_file import TextFile
from apply_service.http.json_body import HashlinesRequest
from apply_service.http.schemas import Base64Content, Hashlines, HashlinesBody


@post(
    "/v1/hashlines",
    tags=["Edits"],
    status_code=200,
    request_class=HashlinesRequest,
    summary="Name the lines of a file for edits in the format `hashline`",
)
async def hashlines(request: HashlinesRequest, data: JSONBody[HashlinesBody]) -> Hashlines:
    """Name all lines. Raises TextFileError."""
    return Hashlines(await asyncio.to_thread(_named, data.original))


def _named(original: str | Base64Content) -> list[str]:
    if isinstance(original, Base64Content):
        file = TextFile.from_bytes(original.base64)
    else:
        file = TextFile.from_text(original)
    lines = file.lines
    return [hashed_line(number, line) for number, line in enumerate(lines, start=1)]
