"""Why an update cannot be read.

SnippetError ← EmptySnippetError, NoMarkerError, NothingToKeepError, MalformedSnippetError,
               UnsupportedOperationError
"""

from __future__ import annotations


class SnippetError(Exception):
    """Base of what can be wrong with an update; the message says what to send instead."""


class EmptySnippetError(SnippetError):
    """The update has no text."""


class NoMarkerError(SnippetError):
    """Nothing says where the lines belong: no marker, and no anchor in the original."""


class NothingToKeepError(SnippetError):
    """The original is empty, so a marker or an old line stands for nothing."""


class MalformedSnippetError(SnippetError):
    """The update begins in a known format and then breaks its rules."""


class UnsupportedOperationError(SnippetError):
    """The update asks for something other than an edit of this one file."""
