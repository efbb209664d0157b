"""Measures the host's time in a step, without the forward pass; see `command`."""
