"""What several dialects share: JSON fields, names, conditions, label keys, one annotation."""
