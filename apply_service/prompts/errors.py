"""Errors of the prompts.

PromptError ← TokenizerError, TextNotEncodableError, ChatTemplateError, UnknownProfileError,
              CalibrationError, AnswerFormatError
"""

from __future__ import annotations


class PromptError(Exception):
    """Base of the errors of turning text into tokens, or tokens into text."""


class TokenizerError(PromptError):
    """The model's tokenizer is missing, damaged or of a kind that cannot keep text exact."""


class TextNotEncodableError(PromptError):
    """The text holds characters that cannot be written in the model's vocabulary."""


class ChatTemplateError(PromptError):
    """The model has no usable chat template."""


class UnknownProfileError(PromptError):
    """No prompt profile has this name."""


class CalibrationError(PromptError):
    """The model's calibration file is there and cannot be read."""


class AnswerFormatError(PromptError):
    """The model's answer is not one whole document between its tags."""
