"""For `tuneoff faults`: the plain program of Optuna, and its parts that can break."""

from __future__ import annotations

from tuneoff.trust.faultmatrix.tools import FaultTools, Part

TOOLS = FaultTools(
    plain="tuneoff_adapters.optuna.plain",
    defaults="the same script in as many processes as workers, on one `JournalStorage` file with its own lock; `Study.optimize` "
    "without `catch`; the configurations by `enqueue_trial`, `n_trials` divided among the processes; the answer is `best_trial`. "
    "Started again, it loads the study and asks for as many trials as are not complete",
    parts=(
        Part(fault="storage_removed", text="the journal's file", file="journal.log"),
        Part(fault="storage_locked", text="the journal's lock", lock="journal.log"),
    ),
)
