"""Thousands of windowed queries over one event stream for about the price of one, on Apache Spark."""
