"""The backward pass of a program: adjoints, and the class that goes back over a chart."""
