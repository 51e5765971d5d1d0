"""What environment variables ask for, read once."""

import os

CHECKING = bool(os.environ.get("PULLBACK_CHECK"))
"""Whether every graph that a pass makes is verified, and attributes can only be read. Tests ask for it."""
