"""What the words of tables, verdicts and runs mean: `tuneoff explain WORD`."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "better": "of a pair: the difference is shown, at the family's confidence, and is not within the margin",
    "worse": "of a pair: the other one is better",
    "equivalent": "of a pair: shown to differ by less than the margin, which is more than that no difference was seen",
    "equivalent though different": "of a pair: a difference is shown, and it is within the margin: too small to matter",
    "not decided": "of a pair: neither a difference nor equivalence is shown; more seeds may show either",
    "not judged": "of a pair: no claim was tried, since there are too few seeds or too few values",
    "robust": "of a verdict: every other reasonable choice (estimate, a seed less, undisturbed runs only) has the same one",
    "not robust": "of a verdict: another reasonable choice has another verdict; which one stands beside it",
    "margin": "the smallest difference that matters; the file sets it, and 5 % is the default of a ratio",
    "noise floor": "what the same framework differs by from itself, where the file names it twice: the interval of that pair",
    "family": "the comparisons that share an error rate: the more pairs, the wider each interval (Bonferroni)",
    "done": "of a run: it ended well, its best configuration was tested, and all is un-deployed",
    "failed": "of a run: it ended with an error; in a median it is worse than any run that is done",
    "timeout": "of a run: a step took longer than the file allows; it counts as failed",
    "interrupted": "of a run: its command was stopped; --resume repeats it, --continue keeps its finished trials",
    "skipped": "of a run: it was never started; the reason is known before: something is missing, not offered, or the same",
    "planned": "of a run: nothing of it has run yet",
    "emulated": "of a run: the platform is a local stand-in, so its figures are not the framework's, and are in no ranking",
    "estimated": "of a figure, marked ~: it rests on a model or a constant, not on a meter",
    "floor": "serial, a plain pool of processes without any framework: what is added to it is what a framework costs",
}
