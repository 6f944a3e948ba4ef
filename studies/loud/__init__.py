"""Wrong models that say nothing, right ones that are not trusted: counted on many small random worlds."""
