"""What is left while one turn places gangs, as values: resources, ports, volumes, devices."""
