"""Pictures of the program for the documentation."""
