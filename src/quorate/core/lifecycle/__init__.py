"""What lasts over several decisions: attempts, and claims that are made ready before binds."""
