"""What matches what: labels, fields, and the rules by which a node suits a pod."""
