"""The evaluation of classifiers that give each text a set of labels."""
