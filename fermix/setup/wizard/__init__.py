"""Three questions to a working chat: what to ask, what to try, and what to write down then."""
