"""SQL: queries out of text, and text out of queries."""
