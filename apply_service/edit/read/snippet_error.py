"""Errors of an update that cannot be read.

SnippetError ← EmptySnippetError, NoMarkerError, NothingToKeepError, MalformedSnippetError,
               UnsupportedOperationError
"""

from __future__ import annotations


class SnippetError(Exception):
    """Base of the errors of an update; the message says what to send instead."""


class EmptySnippetError(SnippetError):
    """The update has no text."""


class NoMarkerError(SnippetError):
    """The update does not say where its lines belong: no marker, no anchor in the original."""


class NothingToKeepError(SnippetError):
    """The original is empty, so there is nothing for a marker or an old line to stand for."""


class MalformedSnippetError(SnippetError):
    """The update begins in a known format and then breaks its rules."""


class UnsupportedOperationError(SnippetError):
    """The update asks for something other than an edit of this one file."""
