"""One turn of the scheduler: whom to try, what came of it, and the one door that makes it true."""
