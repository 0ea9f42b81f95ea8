"""What holds for all tests."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# A busy machine makes an example slow, and not wrong: no property is judged by time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# What a script starts with `&` has SIGINT ignored, and its children too: those that tests send it to must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and what `nohup` starts has this one ignored
