"""The command line: a thin client, one file per group of commands."""
