"""CRAFT on images beside what people use today, on the same data and trunk."""
