"""What can go wrong with a grammar of merges.

GrammarError
├── InvalidRulesError       the rules contradict themselves or are too many
├── NoPathError             not all segments can be placed
└── TokenNotAllowedError    a token that no valid merge has at this position
"""

from __future__ import annotations


class GrammarError(ValueError):
    """A grammar cannot be built, or was left."""


class InvalidRulesError(GrammarError):
    """Rules that contradict themselves, or are too many to be simulated."""


class NoPathError(GrammarError):
    """No choice of placements puts every segment into the original."""


class TokenNotAllowedError(GrammarError):
    """A token that no valid merge has at this position."""
