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
transfer      trained on one label space, scored on others
unequal       labels with fewer or more descriptions than the others
dictionary    definitions as descriptions
beyond        tables of these three
report        tables of docs/study.md; pictures: its figures
"""
