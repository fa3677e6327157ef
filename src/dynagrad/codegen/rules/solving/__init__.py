"""Stages whose ground program is found as they run: blocks, components, and iteration that is watched."""
