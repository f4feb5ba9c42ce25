"""Small trainable modules on top of an encoder."""

from labelspace.heads.cross_encoder import CrossEncoderHead, entailment_score
from labelspace.heads.lacon import FusionHead, LabelEmbeddings, LEAMHead, LSANHead, ProjectionHead

__all__ = [
    "CrossEncoderHead",
    "FusionHead",
    "LEAMHead",
    "LSANHead",
    "LabelEmbeddings",
    "ProjectionHead",
    "entailment_score",
]
