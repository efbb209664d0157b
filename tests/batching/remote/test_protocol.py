"""What tells releases apart is what they send, not how they describe it."""

from __future__ import annotations

from batching.remote import frames


def test_words_do_not_count_and_fields_do() -> None:
    schema = {
        "Submit": {
            "description": "A docstring.",
            "properties": {"description": {"type": "string"}, "id": {"type": "integer"}},
        }
    }
    plain = frames.without_words(schema)
    assert plain == {
        "Submit": {"properties": {"description": {"type": "string"}, "id": {"type": "integer"}}}
    }
    schema["Submit"]["description"] = "Another one."
    assert frames.without_words(schema) == plain
