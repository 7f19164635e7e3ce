"""What an owner does once or when something is wrong: set up, run as a service, examine."""
