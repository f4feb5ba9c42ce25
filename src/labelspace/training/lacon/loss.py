"""The loss of one update: LaCon or a baseline on the texts, plus the prior on descriptions."""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from labelspace.config import LaConConfig
from labelspace.heads import LEAMHead
from labelspace.losses import (
    infonce_columns,
    infonce_rows,
    lacon_loss,
    self_supervised_contrastive,
    supervised_contrastive,
)
from labelspace.training.features import Features
from labelspace.training.lacon.head import LaConHead


@final
@dataclass
class BatchLoss:
    """Turns the features of an update into its loss; order: texts, their second views, descriptions.

    Args:
        head: trainable module on the encoder.
        config: objective, weights, temperature.
        heads: number of slices in eq. 4, from `choose_heads`.
        targets: [text], the label of each text.
        description_targets: [desc], the label of each description; empty without a prior.
        prior: share of the descriptions in the loss.
    """

    head: LaConHead
    config: LaConConfig
    heads: int
    targets: Int[Tensor, " text"]
    description_targets: Int[Tensor, " desc"]
    prior: float
    parts: dict[str, float] = field(default_factory=dict)

    def __call__(self, features: Features) -> Tensor:
        texts = len(self.targets)
        loss = self._of_texts(features[:texts], features[texts : texts + self.second_views])
        if len(self.description_targets):
            table = self.head.table(features[texts + self.second_views :], self.config.temperature)
            prior = prior_loss(table, self.description_targets)
            self.parts["descriptions"] = prior.item()
            loss = (1 - self.prior) * loss + self.prior * self.terms_of_a_text * prior
        return loss

    @property
    def terms_of_a_text(self) -> float:
        """Number of logarithms that a text contributes to the loss, so that a description can count as much as a text.

        LaCon: one per head. Eq. 5 sums over the texts of each label and divides by the number of labels, so it adds
        the mean number of texts per label in the batch, or nothing if all texts share one label.
        """
        if self.head.shape.classifies:
            return self.config.instance_weight
        labels = len(self.targets.unique())
        texts_of_a_label = len(self.targets) / labels if labels > 1 else 0
        return self.config.instance_weight * self.heads + self.config.label_weight * texts_of_a_label

    @property
    def second_views(self) -> int:
        """Number of texts that come twice."""
        return len(self.targets) if needs_two_views(self.config) else 0

    def _of_texts(self, first: Features, second: Features) -> Tensor:
        config, head, targets = self.config, self.head, self.targets
        if not head.shape.classifies:
            assert head.labels is not None
            found = lacon_loss(
                head.vectors(first),
                head.labels(),
                targets,
                config.temperature,
                self.heads,
                regularizer_weight=config.regularizer_weight,
                instance_weight=config.instance_weight,
                label_weight=config.label_weight,
            )
            self.parts = {name: value.item() for name, value in found._asdict().items() if name != "total"}
            return found.total
        cross_entropy = infonce_rows(head.logits(first), targets)  # with logits, this is cross-entropy
        self.parts = {"cross-entropy": cross_entropy.item()}
        loss = config.instance_weight * cross_entropy
        extra: Tensor | None = None
        if config.objective == "cross-entropy+self-contrastive":
            extra = self_supervised_contrastive(head.vectors(first), head.vectors(second), config.temperature)
        elif config.objective == "cross-entropy+supervised-contrastive":
            extra = supervised_contrastive(head.vectors(first), targets, config.temperature)
        if extra is not None:
            self.parts["contrastive"] = extra.item()
            loss = loss + config.label_weight * extra
        if isinstance(head.classifier, LEAMHead):
            own = torch.arange(head.shape.labels, device=targets.device)
            regularizer = infonce_rows(head.classifier.label_logits(), own)
            self.parts["regularizer"] = regularizer.item()
            loss = loss + config.regularizer_weight * regularizer
        return loss


def needs_two_views(config: LaConConfig) -> bool:
    """Return whether each text goes through the encoder twice, under two dropout masks."""
    return config.objective == "cross-entropy+self-contrastive"


def prior_loss(table: Tensor, targets: Tensor) -> Tensor:
    """Return the symmetric contrastive loss of some descriptions and all labels (description-only supervision, eq. 3).

    Rows compare with every label. Columns include only labels with a description in the batch, because others have
    no positive. With a description of each label this is `symmetric_infonce`.

    Args:
        table: [desc label], scores over temperature.
        targets: [desc], the label of each description.
    """
    present, columns = targets.unique(return_inverse=True)
    return (infonce_rows(table, targets) + infonce_columns(table[:, present], columns)) / 2
