"""The MCP server, which edits files below one folder for a coding agent.

- server.py       the server; transport.py its stdio
- tools.py        its two tools; edit_tool.json the first one's description
- elicitation.py  a question in doubt to the person, where the client can ask
- edit_answer.py  its answers for a model; diff_excerpt.py a diff in few lines
"""
