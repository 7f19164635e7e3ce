"""What of a long conversation a model is shown, and what stands instead of the rest."""
