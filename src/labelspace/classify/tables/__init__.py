"""Answers to whole tables, a chunk at a time, in constant memory.

stream            a file with its predictions as a file; `workers` answers in several processes
batches           the same as a function of Arrow rows, for Ray, Spark and Dask
columns           the columns that predictions add
most_uncertain    the documents of a file to label next
"""
