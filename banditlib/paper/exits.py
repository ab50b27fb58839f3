"""How a command ends: its exit codes, and an error that is one sentence."""

from __future__ import annotations

OK, FAILED, USAGE, NO_SPACE, MISSING, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

EXIT_CODES = """\
exit codes:
  0    done (or nothing to do)
  1    verify found a result that does not match
  2    wrong use: an unknown name or option
  3    a folder cannot be read or written (no space, no permission)
  4    something needed is missing: data, an extra, a GPU, a Dask scheduler or its workers
  5    a computation failed, or its workers died; the message says which
  130  interrupted; the same command goes on where it stopped
"""


class CommandError(Exception):
    """One sentence with the remedy, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code
