"""The paper's table, ours beside the published numbers.

Paper: Section 4, Table 1
"""
