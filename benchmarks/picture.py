"""Draw where a matrix's time went: one bar per adapter and sampler, the parts of the job completion time, medians over seeds.

python benchmarks/picture.py results/<folder> docs/time.svg
"""

from __future__ import annotations

import sys
from collections import defaultdict
from html import escape
from pathlib import Path
from statistics import median

from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.names import cell_name, short_label
from tuneoff.matrix.folder import read_plan
from tuneoff.records.model import RunRecord
from tuneoff.records.store import read_runs, selected

PARTS = {
    "time.deploy": ("deploy", "#4c78a8"),
    "time.setup": ("setup", "#72b7b2"),
    "busy": ("trials: training", "#54a24b"),
    "other": ("trials: everything else", "#f58518"),
    "time.result_collection": ("result collection", "#b279a2"),
    "time.test": ("test", "#9d755d"),
    "time.undeploy": ("un-deploy", "#bab0ac"),
}
LEFT, WIDTH, BAR, GAP, TOP, FONT = 150, 640, 26, 14, 64, 13  # pixels; LEFT grows with the longest label
LETTER = 7.0  # pixels of a letter, about


def seconds_by_part(run: RunRecord) -> dict[str, float]:
    """Return seconds by part. The trial span is split by the share of it in which the slots trained."""
    values = {name: (value.value or 0.0) / 1e3 for name, value in run.metrics.items() if name.startswith("time.")}
    share = (run.metrics["slots.utilization"].value or 0.0) / 100
    parts = {name: values[name] for name in PARTS if name in values}
    return {**parts, "busy": values["time.trial"] * share, "other": values["time.trial"] * (1 - share)}


def bars(results: Path) -> dict[str, dict[str, float]]:
    """Return the median seconds of each part by adapter, sampler and variant, done runs only.

    Raises:
        ResultsError: the folder or a record cannot be read, or no run is done.
    """
    groups: dict[str, list[dict[str, float]]] = defaultdict(list)
    for run in selected(list(read_runs(results))):
        spec = run.run_spec()
        if run.status == "done" and not spec.warm_up:
            replicate = f"#{spec.replicate + 1}" if spec.replicate else ""
            label = cell_name(short_label(spec.adapter, spec.adapter) + replicate, spec.experiment)
            groups[label].append(seconds_by_part(run))
    if not groups:
        raise ResultsError(f"{results} must hold a run that is done, but holds none; give a results folder of tuneoff compare")
    return {label: {part: median(run[part] for run in runs) for part in PARTS} for label, runs in groups.items()}


def svg(data: dict[str, dict[str, float]], title: str) -> str:
    """Return the picture as SVG text."""
    longest = max(sum(parts.values()) for parts in data.values())
    scale = WIDTH / longest
    left = max(LEFT, round(LETTER * max(map(len, data))) + 16)
    height = TOP + len(data) * (BAR + GAP) + 46
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + WIDTH + 80}" height="{height}" '
        f'font-family="sans-serif" font-size="{FONT}">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    x = 12
    for name, colour in PARTS.values():
        lines.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{colour}"/><text x="{x + 16}" y="45">{name}</text>')
        x += 30 + 7 * len(name)
    for row, (label, parts) in enumerate(sorted(data.items(), key=lambda item: sum(item[1].values()))):
        y, x_bar = TOP + row * (BAR + GAP), float(left)
        lines.append(f'<text x="{left - 8}" y="{y + 18}" text-anchor="end">{escape(label)}</text>')
        for part, (_, colour) in PARTS.items():
            width = parts[part] * scale
            lines.append(f'<rect x="{x_bar:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>')
            x_bar += width
        lines.append(f'<text x="{x_bar + 6:.1f}" y="{y + 18}">{sum(parts.values()):.1f} s</text>')
    lines.append(
        f'<text x="{left}" y="{height - 14}" fill="#555">job completion time, seconds; median of each part over seeds</text>'
    )
    return "\n".join([*lines, "</svg>\n"])


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    results, output = Path(arguments[0]), Path(arguments[1])
    try:
        text = svg(bars(results), f"Where the time goes: {read_plan(results).name}")
        output.write_text(text)
    except TuneoffError as error:
        return _refuse(str(error), error.exit_code)
    except OSError as error:
        return _refuse(f"{output} cannot be written: {error.strerror}; choose another file", ResultsError.exit_code)
    print(output)
    return 0


def _refuse(problem: str, code: int) -> int:
    print(f"picture: {' '.join(problem.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
