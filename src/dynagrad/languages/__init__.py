"""Languages with derivatives built in, as front ends of the calculus that is here: `pullback/` and `dvl/`.
Each reads text, and ends in the op graph and the compiler that Python functions have."""
