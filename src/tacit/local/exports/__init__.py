"""A trained model for devices of three kinds: NumPy (`npz`), a browser (`web`), C99 (`c`).

`npz` is one file for `tacit.local.device`. `web` and `c` are folders with sources, the model and
golden vectors; they make label and place releases with random-kernel features.
"""
