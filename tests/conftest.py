"""For all tests: what they start can be interrupted, even if they themselves run in the background."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
