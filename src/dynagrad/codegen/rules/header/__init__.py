"""The parts of the face that a program shows to C++: its names, its data, and the classes that a user calls.

`program.py` puts them together. The C++ that is the same for all programs lies here as C++, in files that every header
takes up in its own namespace.
"""
