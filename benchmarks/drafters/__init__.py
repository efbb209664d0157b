"""Tokens per target pass of our drafter and of others, without a model; `command` leads."""
