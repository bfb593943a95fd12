"""The joint search: places for gang members of several classes, or a proof that there are none."""
