"""Execution graphs of master/slave programs, measured again."""
