"""The paper's figures."""
