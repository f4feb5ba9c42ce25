"""Losses: pure functions of tensors, one file a paper."""

from labelspace.losses.distillation import soft_cross_entropy
from labelspace.losses.infonce import infonce_columns, infonce_in_blocks, infonce_rows, symmetric_infonce
from labelspace.losses.labelwise import gaussian_kl, labelwise_contrastive, labelwise_loss
from labelspace.losses.lacon import (
    instance_centred,
    label_centred,
    label_regularizer,
    lacon_loss,
    self_supervised_contrastive,
    supervised_contrastive,
)
from labelspace.losses.reze import pair_infonce, relation_cosine, reze_loss
from labelspace.losses.similarity import cosine_scores

__all__ = [
    "cosine_scores",
    "gaussian_kl",
    "infonce_columns",
    "infonce_in_blocks",
    "infonce_rows",
    "instance_centred",
    "label_centred",
    "label_regularizer",
    "labelwise_contrastive",
    "labelwise_loss",
    "lacon_loss",
    "pair_infonce",
    "relation_cosine",
    "reze_loss",
    "self_supervised_contrastive",
    "soft_cross_entropy",
    "supervised_contrastive",
    "symmetric_infonce",
]
