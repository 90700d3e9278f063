"""The command ``panes``."""
