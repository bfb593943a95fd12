"""What lasts over several decisions: attempts to start gangs, and claims that come before binds."""
