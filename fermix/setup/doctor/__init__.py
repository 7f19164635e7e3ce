"""Looks at everything fermix rests on, names what is wrong with the command that repairs it."""
