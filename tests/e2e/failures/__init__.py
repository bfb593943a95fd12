"""Something fails while gangs commit: no gang is ever left in part."""
