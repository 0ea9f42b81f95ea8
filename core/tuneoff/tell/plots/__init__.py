"""What the page draws, as places and sizes: the templates make the pictures of them. Nothing is interpolated."""
