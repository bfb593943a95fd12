"""A tenant who means ill, a failing API server, and a neighbour who must not notice."""
