"""The experiments of LaCon; docs/lacon.md is their page.

plan          parts and options
protocol      numbers of rows and updates: for two cores, or the paper's
sets          the data sets of tables 1 and 4, and samples of rows
methods       LaCon and its baselines as options of LaConClassifier; train once, score once
experiments   tables 2 to 6, figures 2, 3, 5 and 6
tsne          figure 4
curve         ours, beyond the paper: no dip between zero labels and few
setfit_curve  the same for SetFit, if it is installed
cost          speed and memory
paper         the paper's numbers
runs          rows of results, the test over repeats
report, aims  tables of docs/lacon.md: the paper's, and additional ones; pictures: its figures
"""
