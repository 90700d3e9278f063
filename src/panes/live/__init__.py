"""Windows over a live stream: structures in this process that take in events and answer lookups at any time."""
