"""A Kubernetes cluster for adapters: the way to it, what is made and removed there, pods and their logs. No adapter itself."""
