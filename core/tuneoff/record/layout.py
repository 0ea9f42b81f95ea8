"""The names of the files and folders of an execution's folder, and of a process in its events, that several rooms name."""

SPEC = "spec.json"  # what the coordinator reads
END = "end.json"  # how it ended, and the seal of its raw files: an execution without it has not ended, or was cut
FRAMEWORK = "framework"  # folder of the framework's own files, which tuneoff itself never opens
BEST_CONFIGURATION = "best_configuration.json"  # what the test is given
TEST_RESULT = "test.json"  # what the test's own process wrote
LEFTOVERS = "leftovers.jsonl"  # what must be removed should the run's processes die
OUTSIDE = "outside.txt"  # there while something of it may be outside this machine; its text is for the user
VERSIONS = "versions.json"  # what an adapter learned of versions while the run went on: a server's, an image's digest

POD = "pod"  # role of a process that its adapter alone observes; another one writes its file, if need be long after its end
POD_WORKER = "pod-worker"  # the same of one that runs many trials
IN_PODS = (POD, POD_WORKER)
