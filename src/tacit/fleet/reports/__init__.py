"""What a client reports in a round, per mechanism: noise, encoding, cost."""
