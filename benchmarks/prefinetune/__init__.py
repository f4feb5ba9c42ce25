"""REZE's experiments; docs/prefinetuning-study.md is their page.

plan          parts and options
settings      settings of a call: defaults for one core, or the paper's protocol
sets          sources and targets of the two domains, the mix without any text of a target, samples of rows
ranking       nDCG
encoders      pre-finetuned encoders on disk, made again if missing; IsoScore (figure 3)
printed       equation 6 as the paper prints it, beside the repaired one
experiments   tables 2 and 3, figure 2: fine-tuning on a target, whitening and flow, a linear head or a search
maps          figure 4: relation vectors of the base, PFT and REZE
descriptions  ours: effect of pre-finetuning on classification by descriptions alone; label files in labels/
target_facts  the score of guessing on a target, and the overlap of train and test in a search
paper.csv     the paper's numbers, read by paper
report        tables; pictures: figures
"""
