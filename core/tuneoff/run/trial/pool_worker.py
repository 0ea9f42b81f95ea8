"""What a worker process of a pool does: it runs one trial after another, as its coordinator sends them."""

from __future__ import annotations

from collections.abc import Mapping

from tuneoff.base.identity import configuration_digest
from tuneoff.run.trial.pool import Worker
from tuneoff.run.trial.run_trial import Decision


def work(worker: Worker, stops: Mapping[str, int], is_asking: bool = False) -> None:
    """Take tasks (trial id, configuration, attempt) from the pipe until it is closed, and answer each with its outcome.

    `stops`: after which epoch a configuration is stopped, by its digest. `is_asking`: after each epoch (epoch, value) is sent,
    and the decision that comes back is taken.
    """
    while (task := worker.pipe.recv()) is not None:
        trial_id, configuration, attempt = task
        last_epoch = stops.get(configuration_digest(configuration)) if stops else None

        def report(epoch: int, metrics: Mapping[str, float], last_epoch: int | None = last_epoch) -> Decision:
            if is_asking:
                worker.pipe.send((epoch, metrics[worker.context.metric]))
                decision: Decision = worker.pipe.recv()
                return decision
            return Decision.STOP if last_epoch is not None and epoch >= last_epoch else Decision.CONTINUE

        worker.answer(worker.run(trial_id, configuration, report, attempt=attempt))
