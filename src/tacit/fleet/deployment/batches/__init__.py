"""A round's reports on their way: signed, pooled into a batch, opened, and their masks added."""
