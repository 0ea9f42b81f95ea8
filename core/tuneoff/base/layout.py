"""The names of the files and folders in a results folder and in the folder of an execution, and roles of processes in events."""

RUNS = "runs"  # folder with `<run id>/<execution id>/` of each execution
PLAN = "matrix.json"
LOCK = ".lock"
BEGUN = ".executions"  # the executions that were begun
REPORT = "report"  # folder; derived from the rest, so it is in no bundle
EXPORT = "export"  # folder of the long tables
REPRODUCTION = "reproduction.json"  # what a comparison with a bundle came to

SPEC = "spec.json"  # what the coordinator reads
TRIAL_CONTEXT = "trial_context.json"  # what a trial's process reads
ACCOUNTING = "accounting.json"  # what the run is charged
EVENTS = "events"  # folder with a file of each process
CLOCKS = "clocks"  # folder with the measured clock of each other host of the run, by its boot id
SAMPLES = "power.jsonl"
LOG = "log.txt"  # what its processes print, and the tracebacks of its trials
CHECKPOINTS = "checkpoints"  # folder
SLOTS = "slots"  # folder with the locks of the slots
KILLS = "kills"  # folder with why trials were killed
EXITS = "exits"  # folder with trials that were ended on purpose, of an adapter
FRAMEWORK = "framework"  # folder of the framework's own files, of which tuneoff itself only shows logs
BEST_CONFIGURATION = "best_configuration.json"  # what the test is given
TEST_RESULT = "test.json"  # what the test's own process wrote
LEFTOVERS = "leftovers.jsonl"  # what must be removed should the run's processes die
OUTSIDE = "outside.txt"  # there while something of it may be outside this machine; its text is for the user
VERSIONS = "versions.json"  # what an adapter learned of versions while the run went on: a server's, an image's digest
END = "end.json"  # how it ended, and the seal of its raw files: an execution without it has not ended, or was cut
RECORD = "run.json"  # what is derived from the raw files
LATER = "later"  # folder with the events of an un-deploy after the seal

FOLDERS, FILES = (RUNS, REPORT, EXPORT), (PLAN, LOCK, BEGUN, REPRODUCTION)  # of a results folder
FOLDERS_OF_EXECUTION = (EVENTS, CLOCKS, CHECKPOINTS, SLOTS, KILLS, EXITS, LATER, FRAMEWORK)

POD = "pod"  # role of a process that its adapter alone observes; another one writes its file, if need be long after its end
POD_WORKER = "pod-worker"  # the same of one that runs many trials
IN_PODS = (POD, POD_WORKER)
