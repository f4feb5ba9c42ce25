"""The uncertainty-aware paper's experiments; docs/uncertainty-study.md is their page.

plan         parts and options
settings     settings of a call: defaults for two cores, or the paper's lengths
sets         the eight MTEB tasks of table 1, and samples of rows
variants     TextCNN, +LCL, +UCL, both; the other extractors and contrastive parts; the linear probe
states       token states of each set, stored once, and the encoder's own vectors from them
choose       tuning of rates and weights on train rows only
selection    the rule that selects among them
experiments  tables 2, 3, 4, 7 and 8, figures 3 and 4: train from stored token states, score once
deviation    ours: what the paper leaves open about the deviation
cases        the texts of figure 7
answers      row-by-row answers of main's runs, stored outside the results
compared     comparison of these answers: gains, areas, figure 5
usage        ours: the estimator with its defaults: calibration, promised coverage and risk, on test rows
cost         table 5, and the cost of an epoch against encoding again
draws        bootstrap intervals of differences in area
paper        the paper's numbers
report, differences tables; pictures: figures
"""
