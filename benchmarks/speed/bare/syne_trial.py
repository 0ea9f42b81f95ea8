"""A trial of the bare Syne Tune script, reporting by Syne Tune's own Reporter."""

from __future__ import annotations

import argparse

from syne_tune import Reporter

from benchmarks.speed.bare.objective import loss, stamp


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("x", "y", "k", "seconds"):
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--ends")
    parser.add_argument("--st_checkpoint_dir")
    options = parser.parse_args()
    value = loss({"x": options.x, "y": options.y, "k": options.k}, options.seconds)
    Reporter()(epoch=1, loss=value)
    stamp(options.ends)


if __name__ == "__main__":
    main()
