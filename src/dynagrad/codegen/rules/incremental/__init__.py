"""What lets the facts of a finished chart change."""
