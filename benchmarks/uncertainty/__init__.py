"""The uncertainty-aware paper's experiments: what is run (pieces), and what comes out of it (report).

    settings     how much of everything: what two cores can do, or all rows
    sets         the eight MTEB tasks of table 1, and draws of rows
    variants     TextCNN, +LCL, +UCL, both; the other extractors and contrastive parts; the linear probe
    states       token states of each set, stored once, and the encoder's own vectors from them
    choose       rates and weights on train rows alone
    selection    what wins there, by one rule
    experiments  tables 2, 3, 4, 7 and 8, figures 3 to 5: train from stored token states, score once
    usage        ours: the estimator as a user gets it: calibration, promised coverage and risk, on test rows
    cost         table 5, and what an epoch costs beside encoding again
    draws        test rows drawn again: how sure a difference of areas is
    paper        the paper's own figures
    report, aims tables, and whether the targets are reached; pictures: figures

The page of results is docs/uncertainty-study.md.

Run by `benchmarks/run_uncertainty.py`; `pieces` beside this folder keeps one file a run.
"""
