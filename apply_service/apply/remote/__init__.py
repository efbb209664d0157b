"""Servers of the user's own, which speak OpenAI's chat API.

`endpoint` is an address, `server` asks a model there within its time and budget, `chat_reply` reads
what it sent.
"""
