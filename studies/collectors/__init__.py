"""Agents with memory, agents that switch habits, agents that adapt: does CRAFT mind?"""
