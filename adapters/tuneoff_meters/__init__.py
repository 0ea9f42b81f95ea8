"""Power meters that ship with tuneoff as plugins: one module or package per source."""
