"""``make test``: all checks and tests as stages, side by side as far as the cores go."""
