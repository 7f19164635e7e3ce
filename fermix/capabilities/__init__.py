"""What an agent can do: the tools, who may reach them, and the one door to the world."""
