"""Writes the facts of all published experiments, and the table of what is planned from them.

Run from the root of the repository: python -m tools.published
"""

from __future__ import annotations

from tools.published.experiments import experiments
from tools.published.table import FILE, table_text


def main() -> None:
    """Write every file anew."""
    found = experiments()
    for experiment in found:
        experiment.facts_file.write_text(experiment.facts_text(), "utf-8")
    FILE.write_text(table_text(found), "utf-8")


if __name__ == "__main__":
    main()
