"""Continuous batching with speculation; `engine` has the loop, `async_engine` the façade."""
