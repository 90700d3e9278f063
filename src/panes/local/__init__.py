"""Plans in this process, on Arrow tables: for notebooks, unit tests and contract suites."""
