"""REZE's experiments; docs/prefinetuning-study.md is their page.

plan          parts and options
settings      how much of everything: what one core can do, or the paper's protocol
sets          sources and targets of the two domains, the mix without any text of a target, draws of rows
ranking       nDCG
encoders      pre-finetuned encoders on disk, made again where they are missing; IsoScore (figure 3)
experiments   tables 2 and 3, figure 2: fine-tuning on a target, whitening and flow, a linear head or a search
maps          figure 4: relation vectors of the base, PFT and REZE
descriptions  ours: what pre-finetuning does to classification by descriptions alone; label files in labels/
target_facts  what guessing scores on a target, and what both halves of a search have in common
paper.csv     the paper's own figures; paper: reads them
report        tables; pictures: figures
"""
