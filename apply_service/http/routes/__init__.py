"""HTTP handlers, one file an endpoint family: `apply`, `batches`, `chat`, `code_apply`, `about`."""
