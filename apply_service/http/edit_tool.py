"""The description of the tool `edit_file` for a large model that writes updates.

One text for the endpoint, the MCP server and docs/agent-prompt.md; the advice is what the merge in
`apply_service.edit` needs to be sure of a place.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

NAME = "edit_file"

ToolForm = Literal["openai", "anthropic", "mcp"]

EXAMPLE_ORIGINAL = """\
def load(path):
    text = path.read_text()
    print(text)
    return json.loads(text)"""
EXAMPLE_UPDATE = """\
# ... existing code ...
def load(path):
    text = path.read_text()
    return json.loads(text)
# ... existing code ..."""

DESCRIPTION = f"""\
Edit a file by sending only what changes. `code_edit` is the changed code with a few unchanged \
lines around it, and marker lines that stand for the rest. It is merged into the file and checked; \
what does not fit is refused with the reason and changes nothing.

How to write `code_edit`:
1. One call a file: all changes of the file in one `code_edit`, in the file's order. Read the file \
first.
2. A marker is a comment line of its own in the file's syntax: `// ... existing code ...`, \
`# ... existing code ...`, `<!-- ... existing code ... -->`. It stands for unchanged lines. Begin \
with one unless you send the file's first line, end with one unless you send its last.
3. Copy at least one, better two, unchanged lines before and after each change, exactly as they \
are, with their indentation. No marker directly beside a changed line.
4. These lines must say where they are: if they stand in the file more than once (`return`, `}}`, \
`self.items = {{}}`), go on to one that does not, such as the header of the function.
5. Between two lines that you send next to each other, everything is replaced. So old lines are \
not sent; to delete lines, send the line before and the line after them with nothing between.
6. A definition that you send whole, under its old name, replaces the old one: no lines around it \
are needed, only markers.
7. To delete a whole definition, put a comment `remove NAME` (or `remove Class.name`) on a line \
between two markers.
8. New code goes between the end of what stands before it and the beginning of what stands after \
it; a new import between its neighbours.
9. To rename or move something, or when a place is hard to show, send blocks of this form instead. \
Together, the lines under SEARCH must stand in the file exactly once:
<<<<<<< SEARCH
old lines
=======
new lines
>>>>>>> REPLACE
A unified diff or a `*** Begin Patch` patch will do too. Do not mix forms.
10. Send code alone: no line numbers, no notes about the edit (`// added`), nothing abbreviated \
inside a line.

Example: a file has
{EXAMPLE_ORIGINAL}
and `code_edit` drops the print:
{EXAMPLE_UPDATE}

If the answer is `needs_review` or `rejected`, nothing was written: follow its hints and send the \
edit again, with more unchanged lines or as SEARCH/REPLACE blocks."""

PROPERTIES: dict[str, dict[str, str]] = {
    "target_file": {
        "type": "string",
        "description": "Path of the file, from the root of the project.",
    },
    "instructions": {
        "type": "string",
        "description": "One sentence that says what the edit does, for places that are unclear.",
    },
    "code_edit": {
        "type": "string",
        "description": "The changed code with unchanged lines around it and marker lines, as the"
        " tool's description says.",
    },
}


class FunctionBody(msgspec.Struct, frozen=True, kw_only=True):
    """A function as OpenAI's API describes it."""

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = True


class OpenAITool(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `tools` in OpenAI's chat completions, and in what speaks their language."""

    function: FunctionBody
    type: Literal["function"] = "function"


class AnthropicTool(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `tools` in Anthropic's messages."""

    name: str
    description: str
    input_schema: dict[str, Any]


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as `tools/list` of the Model Context Protocol has it."""

    name: str
    description: str
    input_schema: dict[str, Any] = msgspec.field(name="inputSchema")


def tool_in(form: ToolForm) -> OpenAITool | AnthropicTool | McpTool:
    """The tool in the form that an API wants."""
    schema = {
        "type": "object",
        "properties": PROPERTIES,
        "required": list(PROPERTIES),
        "additionalProperties": False,
    }
    if form == "openai":
        function = FunctionBody(name=NAME, description=DESCRIPTION, parameters=schema)
        return OpenAITool(function=function)
    if form == "anthropic":
        return AnthropicTool(name=NAME, description=DESCRIPTION, input_schema=schema)
    return McpTool(name=NAME, description=DESCRIPTION, input_schema=schema)
