"""What a report says about where it was taken."""

from __future__ import annotations

import os

import torch

from apply_service.evaluate.machine import describe_machine, package_version


def test_a_report_names_processor_threads_format_and_versions() -> None:
    facts = describe_machine(device="cpu", dtype="int8")
    assert facts["device"] == "cpu"
    assert facts["dtype"] == "int8"
    assert facts["processor"]
    assert 1 <= facts["cores"] <= (os.cpu_count() or 1)
    assert facts["threads"] == torch.get_num_threads()
    assert facts["versions"]["torch"] == package_version("torch")
    assert facts["versions"]["transformers"] is not None


def test_a_package_that_is_not_there_has_no_version() -> None:
    assert package_version("no-such-package-of-this-name") is None
