"""The differences between the two servers that are accepted, and what each of them covers."""
