"""fermix as a service of the machine: units, their installation and what became of them."""
