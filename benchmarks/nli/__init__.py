"""Binary or three-way heads for NLI cross-encoders (BTZSC, appendix C.1); a section of docs/btzsc.md has its tables.

plan          parts and options
settings      settings of a call, with the time at which a training stops
heads         trained heads on disk, unfinished ones too; their scores on NLI dev pairs
sets          their scores on the sets of BTZSC
report        tables
"""
