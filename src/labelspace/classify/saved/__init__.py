"""A fitted classifier outside of its process: as a folder, on the hub, as files for other runtimes.

state        what a classifier is, as plain values and arrays; `modules` makes them of torch's
saving       these as a folder; `cards` and `model_card` write its README
opening      a folder as a classifier again; `old_folders` knows the names of earlier versions
fetching     a name as a folder: here, or from the hub; `pushing` is the way back
exporting    files that run without labelspace
"""
