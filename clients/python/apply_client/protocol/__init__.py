"""The HTTP protocol without I/O: both clients drive these modules.

- requests.py   requests as values; transport.py what both clients tell httpx
- affinity.py   names the file of a request to whatever chooses a replica
- exchange.py   when a request is tried again, and when no longer
- answers.py    answers as results and errors; wire.py their shapes
- sse.py        server-sent events; events.py what they mean
- many.py       what came of each of many edits; status.py whether the service answers
"""
