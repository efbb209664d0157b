"""The syntax of files, read by their grammars.

`syntax` answers questions about a file: symbols, imports, borders, errors.
`grammars` loads tree-sitter by `languages`, and refuses hostile sources; `tree_walk` reads a tree
by the tables of `grammar_rules` (`symbol_rules`). `fragment` and `frame_words` parse a piece.
`symbol`, `definitions`, `new_definitions` name the parts; `strict_grammars` finds what a
forgiving grammar lets pass.
"""
