"""What passes between nodes and servers: signatures, records, pools, agreed sets and sums."""
