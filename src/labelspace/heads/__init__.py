"""Small trainable modules on top of an encoder."""

from labelspace.heads.cross_encoder import CrossEncoderHead, entailment_score
from labelspace.heads.lacon import FusionHead, LabelEmbeddings, LEAMHead, LSANHead, ProjectionHead
from labelspace.heads.uncertainty import GaussianHead, TextCNN, sample

__all__ = [
    "CrossEncoderHead",
    "FusionHead",
    "GaussianHead",
    "LEAMHead",
    "LSANHead",
    "LabelEmbeddings",
    "ProjectionHead",
    "TextCNN",
    "entailment_score",
    "sample",
]
