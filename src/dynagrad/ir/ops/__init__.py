"""The operations, one family a file. They are declared here with value, derivatives and C++."""
