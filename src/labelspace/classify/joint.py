"""`JointClassifier`: several fitted classifiers that answer together, as a consensus taught them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, final

from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_number
from labelspace.classify.base import Change, Classifier
from labelspace.classify.by_joint import ByJoint
from labelspace.classify.by_words import ByWords
from labelspace.classify.cards import joint_card
from labelspace.classify.decision import Decision
from labelspace.classify.editing import LabelChange
from labelspace.classify.explanation import Explanation, explain_answer
from labelspace.classify.head import check_learnt
from labelspace.classify.state import State
from labelspace.errors import ConfigError, InputError
from labelspace.geometry.neighbours import Graph
from labelspace.labels import Label, LabelSpace


@final
class JointClassifier(Classifier):
    """The views of a consensus, answering together: encoders, the pool's neighbours, and words.

    `ConsensusClassifier` makes it. It costs as much as all its encoders; a student is faster.

    Args:
        labels: the labels of the consensus.
        min_probability: lowest probability, 0 to 1, at which `predict` returns a label; None: always.

    Attributes:
        head_: the views, and how they are joined.
        label_space_, classes_: the labels.

    Example:
        >>> from labelspace import ConsensusClassifier
        >>> pool = ["the team won", "a match was lost", "the bank closed", "prices rise"] * 3
        >>> clf = ConsensusClassifier(["sports", "money"], views=["zero-shot:tests/data/tiny-bert", "words"])
        >>> type(clf.fit(pool).model_).__name__
        'JointClassifier'
    """

    tensors_file = "joint.safetensors"
    card_of = staticmethod(joint_card)
    not_parameters = ("labels",)

    head_: ByJoint
    fit_result_: Any

    def __init__(self, labels: Any, *, min_probability: float | None = None) -> None:
        self.labels = labels
        self.min_probability = min_probability

    @classmethod
    def of(cls, head: ByJoint, *, min_probability: float | None = None) -> Self:
        """Return the fitted classifier with this head."""
        return cls._of(head, head.space, min_probability=min_probability)

    def decision(self) -> Decision:
        """Return the decision rule: the lowest probability."""
        return Decision(min_probability=self.min_probability)

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Refuse: a consensus learns in `ConsensusClassifier`.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("a JointClassifier is what a consensus learnt; fit a ConsensusClassifier with these labels.")

    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text by its words, if words are a view.

        Args:
            text: one text.
            top: number of labels to show.
            nearest: number of words to quote for the winner and the runner-up.
        """
        check_is_fitted(self)
        if not isinstance(text, str):
            raise InputError(f"explain takes one text. Got {type(text).__name__} instead; loop over several.")
        check_number("top", top, least=1, whole=True)
        check_number("nearest", nearest, least=0, whole=True)
        head, first = self.head_, self.head_.space.names
        words = head.words
        before = {name: first[column] for name, column in head.columns.items()}
        return explain_answer(
            text,
            self.answers([text]),
            space=self.label_space_,
            decision=self.decision(),
            top=top,
            words=(lambda name: words.spoken(text, before[name], most=nearest)) if words is not None else None,
        )

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Refuse: the consensus was about the labels that it had.

        Raises:
            InputError: always.
        """
        name = label.name if isinstance(label, Label) else label.get("name")
        raise InputError(
            f"a consensus cannot take {name!r} in afterwards; fit again with it, or use a student that is an encoder."
        )

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        check_is_fitted(self)
        head, fit = self.head_, getattr(self, "fit_result_", None)
        graph = None if head.graph is None else {"view": head.near, "neighbours": head.graph.count, "own": head.own}
        facts = {
            "space": head.space.to_dict(),
            "columns": head.columns,
            "graph": graph,
            "words": head.words is not None,
        }
        return State(
            encoder=None,
            started_from="",
            space=self.label_space_,
            label_vectors={},
            parameters={"min_probability": self.min_probability},
            fit=None if fit is None else fit.to_dict(),
            facts={"joint": facts},
            tensors=head.tensors(),
            members=head.members,
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state."""
        facts, tensors = state.facts["joint"], state.tensors
        space = LabelSpace.from_dict(facts["space"])
        graph, smoothed, words = facts["graph"], None, None
        if graph is not None:
            smoothed = tensors["smoothed"]
        if facts["words"]:
            own = {name.removeprefix("words."): its for name, its in tensors.items() if name.startswith("words.")}
            words = ByWords.from_tensors(own, space.names)
        head = ByJoint(
            members=state.members,
            scales=tuple(tensors["scales"].tolist()),
            shifts=tensors["shifts"],
            space=space,
            columns={str(name): int(column) for name, column in facts["columns"].items()},
            own=1.0 if graph is None else float(graph["own"]),
            near=None if graph is None else int(graph["view"]),
            graph=None if graph is None else Graph.of(tensors["graph"], count=int(graph["neighbours"])),
            smoothed=smoothed,
            words=words,
        )
        check_learnt(head.columns, state.space, state.place)
        head = replace(head, columns={name: head.columns[name] for name in state.space.names})
        return cls._of(head, state.space, state.fit, **state.parameters)

    def _edit(self, space: LabelSpace, change: Change) -> None:
        self.head_ = self.head_.edited(change)
        super()._edit(space, change)
