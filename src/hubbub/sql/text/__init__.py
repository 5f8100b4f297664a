"""What may be written: the words of SQL, where each stands, and what a refusal adds to help."""
