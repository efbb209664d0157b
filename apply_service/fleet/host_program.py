"""Prepares a process of another program, such as a worker of Ray, for the service. Needs no Ray."""

from __future__ import annotations

import os
import sys

from apply_service.models.torch_environment import set_torch_defaults


def prepare_host() -> None:
    """Prepare this process, a worker of Ray, to start text processes and engines.

    A new text process would import the program that its parent runs, here Ray's worker, for more
    than a second: the process would seem to do long work, and be replaced after every edit.
    """
    set_torch_defaults(os.environ)
    program = sys.modules["__main__"]
    program.__spec__ = None
    vars(program).pop("__file__", None)
