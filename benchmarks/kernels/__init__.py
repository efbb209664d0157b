"""What the kernels become on GPUs that may be absent: `command` prints it, `compiler` compiles."""
