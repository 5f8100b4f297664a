"""What an engine is told: a plan as one text of its dialect (`plan` first)."""
