"""Makes case files from real releases and trains the embedded adapter."""
