"""The process that serves: socket, connections and draining.

`listener` takes the socket; `process` refuses more than one worker.
`graceful_server` runs uvicorn; `connection`, `strict_http` and `keep_alive` are its protocol.
`draining` ends requests before the process ends.
"""
