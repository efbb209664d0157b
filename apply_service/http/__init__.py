"""HTTP: the only room beside `cli` that knows the web framework.

`app` builds the ASGI application; `server` owns the socket, connections and the end of a process.
`guard` is the middleware: keys, limits, hosts, origins, deadlines of bodies.
`routes` holds the handlers; `compat` the APIs of other services; `batch_run` many edits at once.
Wire: `schemas`, `json_body`, `wire_conversion`, `batch_lines`, `edit_tool`.
Errors: `problems` (RFC 9457), `errors` (which problem an exception is), `request_id`.
Document: `openapi_document`.
"""
