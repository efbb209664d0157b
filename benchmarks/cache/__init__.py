"""Measures the time that the prefix cache saves, in one process and in several; see `command`."""
