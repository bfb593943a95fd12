"""How many pods of each class fit on all nodes together, which decides what gangs are woken."""
