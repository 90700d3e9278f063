"""Structures in this process that take in events and answer when asked."""
