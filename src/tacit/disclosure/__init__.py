"""Documents for those who decide about privacy and those who file it, from what can be proven.

Every value comes from a model's guarantee, a run's receipt or plan, a ledger or the record of a
training, and names where it was read. What none of them holds is said to be missing.
"""
