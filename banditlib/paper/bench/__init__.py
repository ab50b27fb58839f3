"""The bench: a file of rows for each kind of problem, how they are timed, and the command."""
