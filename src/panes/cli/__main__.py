"""``python -m panes.cli``, and the file that ``spark-submit`` is given."""

from panes.cli.main import main

if __name__ == "__main__":
    main()
