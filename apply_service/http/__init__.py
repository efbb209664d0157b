"""HTTP: the only room beside `cli` that knows the web framework.

`app` builds the ASGI application; `server` owns the socket, connections and the end of a process.
`guard` is the middleware: keys, limits, hosts, origins, deadlines of bodies.
`routes` holds the handlers; `compat` the APIs of other services; `batch_run` many edits at once.
Wire: `schemas`, `files_body`, `json_body`, `wire_conversion`, `batch_lines`, `edit_tool`.
Errors: `problems` (which RFC 9457 problem an exception is), `errors` (its answer), `request_id`.
429 is either a limit of a key (`guard.limits`) or a full queue (`problems`).
Document: `openapi_document`. For browsers: `page`.
"""
