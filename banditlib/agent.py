"""Live agents: the same policies, one decision at a time."""

from __future__ import annotations


class Agent:
    """Takes one decision at a time (not yet here)."""


def load(file):
    """Read a saved agent (not yet here)."""
    raise NotImplementedError("load is not there yet")
