"""Recordings as they come from the field, made into series: files in, one .npz out."""
