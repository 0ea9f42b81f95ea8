"""What weakens a choice, as its caveats tell it."""

from __future__ import annotations

from dataclasses import replace

from builders.made_results import Entry, results
from judge.choice.test_choose import chosen_of, different, runs
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.record.run_record import TrialRecord


def test_disturbed_runs_are_repeated_by_the_command_that_is_named_once_all_have_ended() -> None:
    entries = [Entry("optuna", runs(4000, 20, "o"), disturbed=range(9)), Entry("ray-tune", runs(12_000, 400, "r"))]
    (caveat,) = choice_to_json(chosen_of(entries))["caveats"]
    assert "9 of 20 runs: times are too long, differences and ratios may be wrong too." in caveat
    assert caveat.endswith("tuneoff compare made.yaml --resume --retry flagged --output /nonexistent")
    waiting = [replace(entries[0], absent=(9,)), entries[1]]
    assert not any("--retry" in text for text in chosen_of(waiting).caveats)


def test_where_nobody_sampled_it_is_unknown_whether_runs_were_disturbed() -> None:
    here = Entry("optuna", runs(4000, 20, "o"))
    elsewhere = Entry("ray-tune", runs(12_000, 400, "r"), unsampled=range(10))
    (caveat,) = chosen_of([here, elsewhere]).caveats
    assert caveat == "Whether other programs were busy is unknown in 10 of 20 runs (no sample): times may be too long."
    (caveat,) = chosen_of([replace(here, disturbed=range(3)), elsewhere]).caveats
    assert caveat.startswith("Other programs were busy in 3 of 20 runs, and it is unknown in 10: times are too long")
    assert not any("Other programs" in text or "other programs" in text for text in chosen_of(different()).caveats)


def test_failed_trials_are_told_with_why_most_of_them_failed() -> None:
    made = results([Entry("optuna", runs(4000, 20, "o")), Entry("ray-tune", runs(12_000, 400, "r"))], range(2))
    texts = {"optuna": ("KeyError: 'x'", "OSError: no disk"), "ray-tune": ("KeyError: 'x'", None)}
    records = []
    for record in made.records:
        causes = texts[record.run_spec().adapter]
        trials = (
            TrialRecord(trial=f"t{n}", configuration={}, digest="", state="failed" if text else "pruned", cause=text)
            for n, text in enumerate(causes)
        )
        records.append(replace(record, trials=tuple(trials)))
    made = replace(made, records=tuple(records), standing={record.run_id: record for record in records})
    assert (
        "Trials failed: 4 of 4 of optuna and 2 of 4 of ray-tune; most often: KeyError: 'x'."
        in choose(made, answers(made)).caveats
    )
    assert not any("Trials failed" in text for text in chosen_of(different()).caveats)
