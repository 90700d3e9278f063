"""Aggregates as values: lift, combine, subtract and lower over columns."""
