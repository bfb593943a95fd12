"""How many pods of each class the nodes take, in all: what decides who is woken."""
