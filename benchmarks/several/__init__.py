"""The study of several labels a text: cuts from a pool against fixed ones and the best there are."""
