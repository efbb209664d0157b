"""Which nodes of each grammar are symbols: one table a language family."""
