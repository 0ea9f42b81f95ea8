"""Katib's controllers for Experiments, Suggestions and Trials, as of v0.19.0: one thread, level-triggered.

What is the same: conditions, reasons, messages, counters and lists of the status; the order of checks; finalizers; that deleted
Trials and Jobs are made again; that nothing stops running trials when the experiment is completed. A Trial without metrics is not
counted when new trials are made, but is when the end is checked: with parallelTrialCount above 1 more than maxTrialCount trials
can be started. That is kept as it is, because whoever uses Katib has to live with it.

What is not: the suggestion service has no pod (its Deployment and Service are objects only, ready at once), no service account
and no volume; controllers do nothing for an object whose deletion was requested but remove their finalizer (Katib would make
missing children again while another finalizer holds the object); the trials told to a service are those of the experiment's own
namespace; no experiment is restarted after its end, and none deletes its trials.
"""

from __future__ import annotations

from katib_emulation.controllers.loop import Controllers

__all__ = ["Controllers"]
