"""What can be said of states, learned or true: visits, graph, accuracy."""
