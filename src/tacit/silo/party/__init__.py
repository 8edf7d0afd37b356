"""One organisation in a federation: its folder, keys, connections and engine."""
