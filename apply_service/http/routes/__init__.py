"""HTTP handlers, one file an endpoint family: `apply`, `models`, `health`."""
