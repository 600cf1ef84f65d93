"""The click commands: parse, call one function, show."""
