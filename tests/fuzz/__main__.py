"""Fuzz for a while: ``make fuzz ARGS='--seconds 3600'``. Findings are printed with the seed that makes them again."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random

from tests.fuzz.targets import TARGETS, Finding


def main() -> int:
    """Try inputs until the time is over; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="the first seed; one that a finding shows makes it again")
    parser.add_argument("--target", choices=list(TARGETS), action="append")
    parser.add_argument("--once", action="store_true", help="try one input for each target")
    given = parser.parse_args()
    chosen = given.target or list(TARGETS)
    seed = given.seed if given.seed is not None else time.time_ns() % 10**12
    tried, found = Counter[str](), dict[str, str]()
    begun = time.monotonic()
    while time.monotonic() < begun + given.seconds:
        for name in chosen:
            tried[name] += 1
            begun_one = time.monotonic()
            try:
                TARGETS[name](Random(seed))
            except Finding as finding:
                # The same mistake in many inputs is shown once.
                what = f"{name}: {str(finding).rpartition(chr(10))[2].strip()}"
                if what not in found:
                    found[what] = str(finding)
                    print(f"--target {name} --seed {seed} --once\n  {finding}", flush=True)
            if (took := time.monotonic() - begun_one) > 10:
                print(f"--target {name} --seed {seed} --once took {took:.0f} s", flush=True)
        seed += 1
        if given.once:
            break
    inputs = ", ".join(f"{name} {number:,}" for name, number in tried.items())
    print(f"{sum(tried.values()):,} inputs in {time.monotonic() - begun:.0f} s ({inputs}); {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
