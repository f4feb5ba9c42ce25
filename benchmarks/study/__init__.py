"""The description-only study; docs/study.md is its page.

plan          parts and options
settings      settings of a call
spaces        ten descriptions for each label, samples of them, and damaged versions
measure       train once, score every anchor
ablations     one thing changed at a time
rates         uniformity on two pools and macro-F1 for every learning rate
rivals        SetFit and logistic regression with a few labelled texts; a learning curve
multilingual  Chinese headlines, with an encoder's prompts and without
schedule      60 updates and 1,000 with patience, on descriptions by five writers
report        tables of docs/study.md; pictures: its figures
"""
