"""Python files of any length, and edits of one function in them, wherever it stands."""

from __future__ import annotations

MARKER = "# ... existing code ..."
PATH = "module.py"
_FUNCTION_LINES = 11


def module_of(num_lines: int) -> str:
    """A module of so many lines, in functions of about ten lines that all differ."""
    parts = []
    for number in range(num_lines // _FUNCTION_LINES + 1):
        parts.append(
            f"def convert_{number}(record, scale):\n"
            f'    """Turn record {number} into its scaled form."""\n'
            f"    total = {number}\n"
            f"    for name, value in record.items():\n"
            f"        if name.startswith('field_{number % 17}'):\n"
            f"            total += value * scale\n"
            f"        else:\n"
            f"            total -= {number} % (value + 1)\n"
            f"    return total\n\n\n"
        )
    return "\n".join("".join(parts).split("\n")[:num_lines]).rstrip("\n") + "\n"


def one_function_update(number: int, *, num_new_lines: int = 2) -> str:
    """The same change of one function, with so many new lines, two at least."""
    checks = "".join(
        f"    if scale == {-check}:\n        return total - {check}\n"
        for check in range(1, num_new_lines // 2)
    )
    return (
        f"{MARKER}\n\n\ndef convert_{number}(record, scale):\n"
        f'    """Turn record {number} into its scaled form."""\n'
        f"    total = {number}\n"
        f"    if scale == 0:\n"
        f"        return total\n"
        f"{checks}"
        f"    for name, value in record.items():\n{MARKER}\n"
    )


def spread_functions(num_lines: int, count: int) -> list[int]:
    """Functions spread over a module, none of them twice, so that no prompt is in the cache."""
    num_functions = num_lines // _FUNCTION_LINES
    return [2 + place * (num_functions - 4) // count for place in range(count)]
