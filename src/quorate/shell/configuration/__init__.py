"""The configuration file: read, checked line by line, and made a value."""
