"""Rules and scores about other pods, by their labels: affinity and spread."""
