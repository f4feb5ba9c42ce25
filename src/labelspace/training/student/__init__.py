"""Training an encoder on the probabilities of a teacher, beside the descriptions."""

from labelspace.training.student.fit import StudentFit, train_student

__all__ = ["StudentFit", "train_student"]
