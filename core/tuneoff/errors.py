"""Errors that a user sees as one line (rule, value, way out), each with the exit code of the command line."""

from __future__ import annotations

from typing import ClassVar

NOT_KNOWN = 7  # exit code of a command that came to no answer


class TuneoffError(Exception):
    """Base of every error that tuneoff raises on purpose; its text is one line that states rule, value and way out."""

    exit_code: ClassVar[int] = 1


class ExperimentError(TuneoffError):
    """An experiment or matrix file, a search space, or an option breaks a rule."""

    exit_code = 2


class UnknownNameError(ExperimentError):
    """An adapter, workload, sampler or pruner of that name does not exist; the text lists the known ones."""


class UnsupportedError(ExperimentError):
    """The request cannot be served: excluded by the adapter's capabilities, or not expressible exactly in the framework."""


class MissingPackageError(TuneoffError):
    """A package that an adapter or workload needs is missing or too old; the text has the command that installs it."""

    exit_code = 3


class DataError(TuneoffError):
    """A data file is missing, truncated or corrupted, and could not be obtained."""

    exit_code = 4


class ResultsError(TuneoffError):
    """The results folder cannot be read or written, or has another format version."""

    exit_code = 5


class PluginError(TuneoffError):
    """A plugin (adapter or workload) cannot be imported or is not what its entry point promises."""

    exit_code = 6


class StepError(TuneoffError):
    """A lifecycle step failed or timed out."""

    exit_code = 1


class InfrastructureError(StepError):
    """A lifecycle step failed because of a machine, a network or a cluster, not of the framework: it may go well next time."""


class UserError(StepError):
    """A lifecycle step failed by what the user must mend outside of the experiment (an image, a host, a token)."""


class TrialFailedError(TuneoffError):
    """A trial failed; raised inside a framework so that it records the failure too."""


class CheckpointError(TuneoffError):
    """A checkpoint is missing or unreadable; never a silent restart at epoch 0."""
