"""The version, in a module of its own so that packaging can read it without importing Tacit."""

VERSION = "0.2.0"
