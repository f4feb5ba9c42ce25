"""Small trainable modules on top of an encoder."""

from labelspace.heads.cross_encoder import CrossEncoderHead, entailment_score

__all__ = ["CrossEncoderHead", "entailment_score"]
