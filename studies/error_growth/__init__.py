"""Do mistakes multiply with h? For recursive DRAFT they can, for CRAFT they add up.

Paper: Section 3.1.1
"""
