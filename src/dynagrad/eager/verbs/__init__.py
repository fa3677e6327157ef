"""What users call: derivatives of Python functions as functions, one verb or one kind of verb a file."""
