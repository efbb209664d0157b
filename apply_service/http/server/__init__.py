"""The process that serves: socket, connections, draining and memory.

`listener` takes the socket; `single_process` refuses more than one worker.
`graceful_server` runs uvicorn; `connection`, `strict_http` and `keep_alive` are its protocol.
`draining` ends requests before the process ends; `free_memory` gives memory back.
"""
