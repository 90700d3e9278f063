"""What a user writes: windows, expressions and queries."""
