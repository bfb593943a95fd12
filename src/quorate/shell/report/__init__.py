"""Tell people and programs: conditions, Events, status of gangs' objects, metrics."""
