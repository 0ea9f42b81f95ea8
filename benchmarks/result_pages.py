"""`python -m benchmarks.result_pages RESULTS ...`: write docs/results/NAME.html from each results folder of an experiment.

A page holds the question of its file, the answer in two sentences, one picture with its table, the command, machine and date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jinja2 import ChoiceLoader, DictLoader

from tuneoff.base.commands import split_command
from tuneoff.cli.listing import experiments
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.choice.choice import Choice, declared_seeds
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.levels import ENOUGH
from tuneoff.judge.comparison.environments import recorded_facts
from tuneoff.judge.results import read_results
from tuneoff.tell.page.report import environment, page, render

FOLDER = Path(__file__).parents[1] / "docs" / "results"
SPECIFIC = (*ENOUGH.values(), "Utilization is", "Speed-up")  # sentences on what the matrix varies
MACHINE = ("CPU", "logical processors", "python")
TEMPLATE = """\
{% extends "layout.html" %}
{% import "macros.html" as m with context %}
{% import "choice.html" as first with context %}
{% import "plots.html" as plots with context %}
{% block main %}
<section class="answer"><h1>{{ question }}</h1>
{% for line in sentences %}<p>{{ line }}</p>
{% endfor %}
{% if seeds < fewest %}<p>Descriptive: {{ seeds | counted("seed") }}; a verdict needs {{ fewest }}.</p>{% endif %}
</section>
{% if main.curves %}
{% with plot = (main | drawn | list)[-1] %}
<figure>{{ plots.curve(plot) }}
{% call m.region("Table: " ~ plot.title) %}
<table class="shares"><caption>{{ plot.title }}</caption>
<thead><tr><th scope="col">framework</th>{% for text in plot.columns %}<th scope="col">{{ text }}</th>{% endfor %}</tr></thead>
<tbody>{% for line in plot.lines %}
<tr><th scope="row">{{ line.name }}</th>{% for cell in line.cells %}{{ m.cell(cell) }}{% endfor %}</tr>
{% endfor %}</tbody></table>
{% endcall %}
</figure>
{% endwith %}
{% else %}
{{ first.table(main, true) }}
{% endif %}
<p>{{ how }}</p>
<p>Command: {{ repeat | with_command }}</p>
{% endblock %}
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.result_pages", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="results folders of files of the catalogue")
    for folder in parser.parse_args().results:
        choice = choose(answers(read_results(folder)))
        path = FOLDER / f"{choice.name}.html"
        path.write_text(rendered(choice), encoding="utf-8")
        print(path)
    return 0


def rendered(choice: Choice) -> str:
    """Return the page of a results folder whose experiment is in the catalogue.

    Raises:
        UnknownNameError: it is not.
    """
    values = page(choice, FOLDER)
    plan = choice.answers.results.plan
    lines = [line for line in choice.lines if line.startswith(SPECIFIC) or " against " in line] or list(choice.lines)
    environments = [recorded_facts(record.environment) for record in choice.answers.results.selected.values()]
    machine = [f"{name} {of[name]}" for name in MACHINE for of in environments if name in of]
    shipped = [loader for loader in (environment().loader,) if loader is not None]
    templates = environment().overlay(loader=ChoiceLoader([DictLoader({"result.html": TEMPLATE}), *shipped]))
    values |= {
        "question": experiments([choice.name])[0][0]["text"].splitlines()[0],
        "sentences": [split_command(line)[0] for line in lines[:2]],
        "seeds": declared_seeds(choice.settings[0].rows),
        "fewest": FEWEST_SEEDS,
        "how": " · ".join((*values["facts"], *dict.fromkeys(machine))),
        "repeat": plan.resume_command(Path("results")).partition(" --resume")[0],
    }
    return render(values, template="result.html", templates=templates)


if __name__ == "__main__":
    sys.exit(main())
