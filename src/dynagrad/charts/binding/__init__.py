"""Facts meet a program: they are gathered and coded, a plan is chosen for them, and charts are set up over them."""
