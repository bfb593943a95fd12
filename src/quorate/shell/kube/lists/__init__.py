"""Lists and watches of one resource, resumed for ever."""
