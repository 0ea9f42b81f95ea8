"""A local process that serves what KatibClient needs of a cluster. It is no Katib: its results say `emulated`.

It imports nothing of tuneoff, and can be used alone: `python -m katib_emulation --help`.
"""
