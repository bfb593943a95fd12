"""What people ask of a cluster: gangs by name, what is told of them, mistakes, words for Tab."""
