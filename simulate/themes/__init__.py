"""What some runs are about: priorities, zones, volumes, restarts and the like, one file each."""
