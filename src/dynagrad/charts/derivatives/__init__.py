"""What derivatives of a run answer: gradients, tangents, marginals, jets, and a program as a function."""
