"""What is asked: experiment files, search spaces, the plan of a matrix, what runs are charged."""
