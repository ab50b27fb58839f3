"""The book's own Python: how it is built, exported and printed, its extensions, its ledger.

It lives beside the pages and is run from the project's root (``python -m book.build``). It imports
`banditlib`; nothing imports it, and it is not part of the distribution.
"""
