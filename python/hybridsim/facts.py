"""The former name of `hybridsim.events`."""

from __future__ import annotations

import warnings

from . import events
from .events import *  # noqa: F403
from .events import __all__ as __all__

warnings.warn("hybridsim.facts is now hybridsim.events", DeprecationWarning, stacklevel=2)

FACTS = events.EVENTS
PARTS = events.PHASES
