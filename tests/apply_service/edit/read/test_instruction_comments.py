"""Comments about the edit are optional; comments about the code are lines like any other."""

from __future__ import annotations

import pytest

from apply_service.edit.read.instruction_comments import is_instruction
from apply_service.edit.read.snippet import read_snippet

INSTRUCTIONS = [
    "// Add a new method to close the file",
    "# Add new import",
    "# Add the following imports:",
    "<!-- Insert the new section here -->",
    "/* Add missing properties */",
    "// Modify this function to retry",
    "# Update the constructor",
    "# Change the signature so that it takes a path",
    "// Replace the existing implementation with a faster one",
    "# Modify the frames function to count the bytes that were skipped",
    "// Update fetchUser function to retry",
    "-- Add the new column definition",
    "// Insert this after the constructor",
    "// BEGIN REPLACE writeJSON",
    "// END REPLACE writeJSON",
    "# START OF CHANGES",
    "// NEW",
    "// New method",
    "// Updated function:",
    "# --- Added imports ---",
    "// Create a new helper for the dates",
]
ORDINARY = [
    "// Adds two numbers",
    "# Add two numbers",
    "# Update the cache",
    "# Update the state of the handler",
    "// Change the colour when the pointer is over it",
    "# Insert into the tree",
    "# Replace newlines by spaces",
    "// Create the parser",
    "# Fix up the paths",
    "# Move to the next token",
    "// Remove trailing whitespace",
    "# Begin with the oldest",
    "// begin replace",
    "# Newer versions have it",
    "# new in version 3.2: the argument is a path",
    "// Added in 2.1 for compatibility",
    "# Modified by the caller",
    "# Use the same settings as above",
    "# Define what is shown",
    "# Import lazily: it takes 200 ms",
    "# Include the borders",
    "# Write the header",
    '"""Create a base class with a metaclass."""',
    "add a new method",
    "print('// Add a new method')",
    "x = 1  # Add a new method",
]


@pytest.mark.parametrize("line", INSTRUCTIONS)
def test_instructions_are_recognised(line: str) -> None:
    assert is_instruction(line)


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_comments_are_not(line: str) -> None:
    assert not is_instruction(line)


def test_above_known_code_fewer_words_are_asked_for() -> None:
    line = "// Add a refinement so that a booking ends after it begins"
    assert is_instruction(line, is_before_known_code=True)
    assert not is_instruction(line)
    assert not is_instruction("// Adds a refinement", is_before_known_code=True)


ORIGINAL = ["# Add a new method for dates", "def first():", "    return 1", "", "LIMIT = 10"]


def optional(update: list[str]) -> list[str]:
    segments = read_snippet(update, ORIGINAL, path="x.py").segments
    return [line.text for one in segments for line in one.lines if line.is_optional]


def test_what_stands_in_the_original_is_no_instruction() -> None:
    assert optional(["# ...", "# Add a new method for dates", "def first():", "    return 2"]) == []


def test_a_name_that_the_original_binds_is_known_code() -> None:
    comment = "# Change the number of things"
    assert optional(["# ...", comment, "LIMIT = 20"]) == [comment]
    assert optional(["# ...", "LIMIT = 10", comment, "OTHER = 20"]) == []


def test_a_comment_that_goes_on_is_none() -> None:
    assert optional(["# ...", "# The caller may", "# Add a new method", "LIMIT = 20"]) == []


def test_instructions_in_a_diff_are_optional_too() -> None:
    assert optional(["-LIMIT = 10", "+# Add a new constant", "+LIMIT = 20"]) == [
        "# Add a new constant"
    ]
