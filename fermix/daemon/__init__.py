"""The running fermix: processes, supervision, composition, control socket."""
