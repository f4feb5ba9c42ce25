"""The description-only study: what is run (pieces), and what comes out of it (report).

    settings    what holds for all runs; `pieces` beside this folder keeps one file a run and skips what has its file
    spaces      ten descriptions for each label; draws, and what can be wrong with them
    measure     train once, score every anchor
    ablations   one thing changed at a time
    rates       every learning rate: uniformity on two pools, macro-F1
    rivals      SetFit and logistic regression with a few labelled texts; a learning curve
    report      tables of docs/study.md; pictures: its figures

Run by `benchmarks/run_study.py`.
"""
