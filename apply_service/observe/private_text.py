"""Marks log lines that may contain users' text."""

from __future__ import annotations

import logging

# What is written to it has pieces of users' files; it is silent unless a setting opens it.
TEXT_LOGGER = logging.getLogger("apply_service.text")

# Extra of a log line whose error came out of somebody's edit: its message may quote the edit.
PRIVATE_ERROR = {"is_private": True}
