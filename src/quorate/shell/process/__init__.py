"""What the process does for itself: clocks, threads, memory, logs, and whether it still turns."""
