"""Setup, service, doctor, HTTP: what an owner does with fermix beside talking to it."""
