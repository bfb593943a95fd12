"""What people type and keep: the command line and recordings."""
