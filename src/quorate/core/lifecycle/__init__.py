"""What lasts over several decisions: attempts, and claims that are prepared before binds."""
