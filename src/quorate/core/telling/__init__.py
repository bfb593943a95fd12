"""What is said when: of gangs that wait, to their pods, their objects and whoever reads Events."""
