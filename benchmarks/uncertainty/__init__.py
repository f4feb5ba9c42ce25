"""The uncertainty-aware paper's experiments; docs/uncertainty-study.md is their page.

plan         parts and options
settings     how much of everything: what two cores can do, or all rows
sets         the eight MTEB tasks of table 1, and draws of rows
variants     TextCNN, +LCL, +UCL, both; the other extractors and contrastive parts; the linear probe
states       token states of each set, stored once, and the encoder's own vectors from them
choose       rates and weights on train rows alone
selection    what wins there, by one rule
experiments  tables 2, 3, 4, 7 and 8, figures 3 and 4: train from stored token states, score once
answers      what main's runs answered row by row, kept beside the results
compared     these set beside one another: gains, areas, figure 5
usage        ours: the estimator as a user gets it: calibration, promised coverage and risk, on test rows
cost         table 5, and what an epoch costs beside encoding again
draws        test rows drawn again: how sure a difference of areas is
paper        the paper's own figures
report, aims tables, and whether the targets are reached; pictures: figures
"""
