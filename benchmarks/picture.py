"""Draw where a matrix's time went: one bar per adapter and sampler, the parts of the job completion time, medians over seeds.

The shortest bar comes first; hatched bars of emulated platforms stand below them, in no order of speed.

python benchmarks/picture.py results/<folder> docs/time.svg
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median

from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.names import cell_name, platform_text, short_label
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import read_runs, standing

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
LETTER = 8.0  # pixels of a letter, about
EMULATED = "emulated (hatched): local stand-ins for a platform, not the framework's performance, in no order of speed"
HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="2" height="6" fill="white" fill-opacity="0.75"/></pattern></defs>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The median seconds of each part of an adapter's runs with one sampler and variant."""

    label: str
    parts: Mapping[str, float]
    emulated: bool = False

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())


def seconds_by_part(run: RunRecord) -> dict[str, float]:
    """Return seconds by part. The trial span is split by the share of it in which the slots trained."""
    values = {name: (value.value or 0.0) / 1e3 for name, value in run.metrics.items() if name.startswith("time.")}
    share = (run.metrics["slots.utilization"].value or 0.0) / 100
    parts = {name: values[name] for name in PARTS if name in values}
    return {**parts, "busy": values["time.trial"] * share, "other": values["time.trial"] * (1 - share)}


def bars(results: Path) -> list[Bar]:
    """Return a bar per adapter, platform, sampler and variant, of done runs that ran in one go: a continued one has no times.

    Raises:
        ResultsError: the folder or a record cannot be read, or no run is done.
    """
    groups: dict[tuple[str, bool], list[dict[str, float]]] = defaultdict(list)
    for run in standing(read_runs(results)).values():
        spec = run.run_spec()
        if run.status == "done" and run.continues is None and not spec.warm_up:
            replicate = f"#{spec.replicate + 1}" if spec.replicate else ""
            platform = f"@{platform_text(spec.platform, run.emulated)}" if spec.platform != "local" else ""
            label = cell_name(short_label(spec.adapter, spec.adapter) + platform + replicate, spec.experiment)
            groups[label, run.emulated].append(seconds_by_part(run))
    if not groups:
        raise ResultsError(
            f"{results} must hold a run that is done and ran in one go, but holds none; give a results folder of tuneoff compare"
        )
    return [
        Bar(label=label, parts={part: median(run[part] for run in runs) for part in PARTS}, emulated=emulated)
        for (label, emulated), runs in groups.items()
    ]


def in_order(data: Sequence[Bar]) -> list[Bar]:
    """Return the bars from the shortest to the longest, and below these the emulated ones by name."""
    ranked = sorted((bar for bar in data if not bar.emulated), key=lambda bar: bar.seconds)
    return [*ranked, *sorted((bar for bar in data if bar.emulated), key=lambda bar: bar.label)]


def svg(data: Sequence[Bar], title: str) -> str:
    """Return the picture as SVG text."""
    ordered = in_order(data)
    ranked = sum(not bar.emulated for bar in ordered)
    apart = (BAR + GAP) // 2 if ranked < len(ordered) else 0  # room for the line above the emulated bars
    scale = WIDTH / max(bar.seconds for bar in ordered)
    left = max(LEFT, round(LETTER * max(len(bar.label) for bar in ordered)) + 16)
    height = TOP + len(ordered) * (BAR + GAP) + apart + 46
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + WIDTH + 80}" height="{height}" '
        f'font-family="sans-serif" font-size="{FONT}">',
        HATCH,
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    x = 12
    for name, colour in PARTS.values():
        lines.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{colour}"/><text x="{x + 16}" y="45">{name}</text>')
        x += 30 + 7 * len(name)
    if apart:
        y = TOP + ranked * (BAR + GAP)
        lines.append(f'<line x1="12" x2="{left + WIDTH}" y1="{y - GAP / 2:g}" y2="{y - GAP / 2:g}" stroke="#999"/>')
        lines.append(f'<text x="{left}" y="{y + 10}" font-size="11" fill="#555">{escape(EMULATED)}</text>')
    for row, bar in enumerate(ordered):
        y, x_bar = TOP + row * (BAR + GAP) + (apart if bar.emulated else 0), float(left)
        lines.append(f'<text x="{left - 8}" y="{y + 18}" text-anchor="end">{escape(bar.label)}</text>')
        for part, (_, colour) in PARTS.items():
            width = bar.parts[part] * scale
            lines.append(f'<rect x="{x_bar:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>')
            x_bar += width
        if bar.emulated:
            width = bar.seconds * scale
            lines.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{BAR}" fill="url(#hatch)"/>')
        lines.append(f'<text x="{x_bar + 6:.1f}" y="{y + 18}">{bar.seconds:.1f} s</text>')
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
