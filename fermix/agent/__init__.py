"""The loop that thinks and acts: model, tools, repeat."""
