"""What Katib's webhooks do with an Experiment before it is stored: decode it, fill in defaults, check it (Katib v0.19.0).

The real CRDs have no schema: whatever these rules do not refuse is stored. Differences to Katib, all of them stricter: a trial
template in a ConfigMap, a custom metrics collector, NAS, and success or failure conditions other than
`status.conditions.#(type=="T")#|#(status=="S")#` are refused, because nothing here could run them; the emulated katib-config
lists the algorithms random, grid and multivariate-tpe, the early stopping medianstop, and the collectors StdOut and File.
"""

from __future__ import annotations

from katib_emulation.admission.experiment import DEFAULTER, admit_experiment

__all__ = ["DEFAULTER", "admit_experiment"]
