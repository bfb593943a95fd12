"""CEL selectors of devices: rewritten, bounded, evaluated by the library."""
