"""What people see: reports, pages, plots, live views, data frames."""
