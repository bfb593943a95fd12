"""What is refused or changed before an object is stored, beside the rules of its kind."""
