"""Values that are equal are one: states of loops, loops that another loop computes, divisions by one root."""
