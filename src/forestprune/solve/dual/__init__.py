"""How far from the least objective a solution can be at most: bounds from the dual."""
