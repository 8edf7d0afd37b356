"""Computing on secret shares: sessions, protocols and what they open."""
