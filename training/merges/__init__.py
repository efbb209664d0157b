"""What the scores of merges are fitted to: `examples`, whose right ones `truth` finds; `scores`."""
