"""The command ``panes``: the same as ``python -m panes``, and the file to give to ``spark-submit``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say how to install it."""
    try:
        from panes.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("typer", "rich"):
            raise
        print(f"panes: the command line needs {package}: run pip install 'panes[cli]'.", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
