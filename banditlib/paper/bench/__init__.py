"""How fast the engine is, beside plain loops, on this machine."""
