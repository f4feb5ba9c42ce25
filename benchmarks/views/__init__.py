"""The consensus study; docs/consensus.md has its table.

plan         parts and options
experiments  a consensus on four data sets, with each student
report       the tables
"""
