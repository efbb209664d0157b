"""Triton kernels, each with the signature and the meaning of the torch reference of its name.

`triton_ops` gathers them. They are compiled for NVIDIA GPUs, or run on the CPU by Triton's
interpreter if the environment says TRITON_INTERPRET=1 before triton is first imported.
"""
