"""The experiments of LaCon; docs/lacon.md is their page.

plan          parts and options
protocol      how much of everything: what two cores can do, or the paper's own
sets          the data sets of tables 1 and 4, and draws of rows
methods       LaCon and its baselines as options of LaConClassifier; train once, score once
experiments   tables 2 to 6, figures 2, 3, 5 and 6
tsne          figure 4
curve         ours, beyond the paper: no dip between zero labels and few
setfit_curve  the same for SetFit, where the package is
cost          speed and memory
paper         the paper's own figures
runs          rows of results, the test over repeats
report, aims  tables of docs/lacon.md: the paper's, and those that it does not ask for; pictures: its figures
"""
