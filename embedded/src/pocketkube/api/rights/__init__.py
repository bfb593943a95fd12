"""Who somebody is and what they may do: tokens, RBAC, and reviews that ask for it."""
