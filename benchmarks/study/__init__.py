"""The description-only study; docs/study.md is its page.

plan        parts and options
settings    what holds for all runs
spaces      ten descriptions for each label; draws, and what can be wrong with them
measure     train once, score every anchor
ablations   one thing changed at a time
rates       every learning rate: uniformity on two pools, macro-F1
rivals      SetFit and logistic regression with a few labelled texts; a learning curve
report      tables of docs/study.md; pictures: its figures
"""
