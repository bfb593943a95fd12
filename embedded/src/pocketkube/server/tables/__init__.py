"""Tables: what ``kubectl get`` shows, a row for each object."""
