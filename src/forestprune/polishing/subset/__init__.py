"""Best subset polishing (sections 2.4 and 4 of the paper): the few trees that fit best together.

`best_subset` minimises a quadratic with a limit on the trees selected, or a price for each.
`search` finds good selections by iterative hard thresholding and local moves, on least-squares fits
that `fit` keeps up to date; `exact` proves how good they are by mixed-integer programming.
"""
