"""Tensor kernels and their torch references behind `ops`; imports nothing of ours."""
