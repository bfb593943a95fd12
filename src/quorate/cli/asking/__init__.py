"""What people ask of a cluster: gangs by name, choices, mistakes that are found, words for Tab."""
