"""The report as one self-contained page: what is on it, and how it becomes HTML. jinja2 is imported where it writes."""
