"""Misspecified linear bandits on many lanes at once."""
