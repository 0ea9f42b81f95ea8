"""Katib: an Experiment on a cluster, each trial in a pod, followed by watches."""
