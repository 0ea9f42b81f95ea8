"""What people read: the comparison's table, and exports for other tools."""
