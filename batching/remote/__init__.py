"""An engine in another process: the same interface at both ends of a socket.

`engine_client` stands where an engine would, `engine_server` has the engine, `frames` are what they
send each other through a `frame_socket`. `engine_process` starts one and ends it, or finds the
one for which `engine_listener` listens.
"""
