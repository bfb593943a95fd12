"""What end-to-end tests and benches do to a cluster: schedulers, worlds, loads, and faults."""
