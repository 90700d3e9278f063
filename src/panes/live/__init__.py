"""Structures in this process that take in the events of a stream and answer lookups at any time."""
