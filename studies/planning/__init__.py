"""How many labelled transitions it takes to reach goals with an encoder that was learned from videos alone."""
