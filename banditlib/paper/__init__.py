"""Everything that is about reproducing the paper; the core never imports it."""
