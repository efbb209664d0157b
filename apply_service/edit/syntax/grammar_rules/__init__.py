"""Tables that say which nodes of each grammar are symbols, one table a language family."""
