"""From C++ to a library on disk: the compiler and its flags, the cache of what it made."""
