"""`JointClassifier`: several fitted classifiers that answer together, as a consensus taught them."""

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, final

from sklearn.utils.validation import check_is_fitted

from labelspace.classify.arguments import as_label
from labelspace.classify.base import Change, Classifier
from labelspace.classify.bi_encoder import BiEncoderClassifier
from labelspace.classify.by_joint import ByJoint
from labelspace.classify.by_words import ByWords
from labelspace.classify.editing import LabelChange
from labelspace.classify.encoding import Matrix, own_vectors
from labelspace.classify.explanation import Explanation, check_asked, explain_answer, nearest_descriptions
from labelspace.classify.head import check_learnt
from labelspace.classify.long_texts import windows_of
from labelspace.classify.saved.cards import joint_card
from labelspace.classify.saved.state import State
from labelspace.corpus import Documents, Kind
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
        temperature: divides the log-probabilities before the softmax, above 0.

    Attributes:
        head_: the views, and how they are joined.
        label_space_, classes_: the labels.

    Example:
        >>> from labelspace import ConsensusClassifier
        >>> pool = [f"{text} {day}" for day in range(13) for text in ("the team won", "a match", "the bank", "prices")]
        >>> views = ["zero-shot:tests/data/tiny-bert", "words"]
        >>> clf = ConsensusClassifier(["sports", "money"], views, config={"guards": False})
        >>> type(clf.fit(pool).model_).__name__
        'JointClassifier'
    """

    tensors_file = "joint.safetensors"
    card_of = staticmethod(joint_card)
    not_parameters = ("labels",)

    head_: ByJoint
    fit_result_: Any

    def __init__(self, labels: Any, *, min_probability: float | None = None, temperature: float = 1.0) -> None:
        self.labels = labels
        self.min_probability = min_probability
        self.temperature = temperature

    @classmethod
    def of(cls, head: ByJoint) -> Self:
        """Return the fitted classifier with this head."""
        return cls._of(head, head.space)

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Refuse: a consensus learns in `ConsensusClassifier`.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("a JointClassifier is what a consensus learnt; fit a ConsensusClassifier with these labels.")

    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text by descriptions near it, and by its words if words are a view.

        Args:
            text: one text.
            top: number of labels to show.
            nearest: number of descriptions, and of words, to quote for the winner and the runner-up.
        """
        check_is_fitted(self)
        shown = check_asked(text, top, nearest)
        head, first = self.head_, self.head_.space.names
        words = head.words
        before = {name: first[column] for name, column in head.columns.items()}
        answers, member = self.answers([shown]), self._quoted()
        windows = windows_of(member, shown, head.space)
        quoted = None
        if member is not None and nearest:
            encode = functools.cache(functools.partial(_vector, member))
            read = (lambda _: shown) if windows is None else windows.text
            quoted = nearest_descriptions(
                lambda name: encode(read(name)), member.label_space_, member.label_vectors_, most=nearest
            )
        return explain_answer(
            shown,
            answers,
            space=self.label_space_,
            decision=self.decision(),
            top=top,
            nearest=(lambda name: quoted(before[name])) if quoted is not None else None,
            words=(lambda name: words.spoken(shown, before[name], most=nearest)) if words is not None else None,
            passage=windows and windows.passage(before[answers.labels[answers.likeliest[0]]]),
        )

    def _quoted(self) -> BiEncoderClassifier | None:
        """Return the view that explanations quote: the one whose space holds the neighbours, or else the first."""
        head = self.head_
        members = [one for one in head.members if isinstance(one, BiEncoderClassifier) and one.head_.reads_descriptions]
        chosen = head.members[head.near] if head.near is not None else None
        return next((one for one in members if one is chosen), members[0] if members else None)

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Refuse: the consensus was about the labels that it had.

        Raises:
            InputError: always.
        """
        name = as_label(label).name
        raise InputError(
            f"a consensus cannot take {name!r} in afterwards; fit again with it, or use a student that is an encoder."
        )

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        state, head = super().state(), self.head_
        graph = None if head.graph is None else {"view": head.near, "neighbours": head.graph.count, "own": head.own}
        facts = {
            "space": head.space.to_dict(),
            "columns": head.columns,
            "graph": graph,
            "words": head.words is not None,
        }
        return replace(state, facts={"joint": facts}, tensors=head.tensors(), members=head.members)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state."""
        facts, tensors = state.facts["joint"], state.tensors
        space = LabelSpace.from_dict(facts["space"])
        graph, neighbours, words = facts["graph"], dict[str, Any](), None
        if graph is not None:
            neighbours = {
                "own": float(graph["own"]),
                "near": int(graph["view"]),
                "graph": Graph.of(tensors["graph"], count=int(graph["neighbours"])),
                "smoothed": tensors["smoothed"],
            }
        if facts["words"]:
            own = {name.removeprefix("words."): its for name, its in tensors.items() if name.startswith("words.")}
            words = ByWords.from_tensors(own, space.names)
        head = ByJoint(
            members=state.members,
            scales=tuple(tensors["scales"].tolist()),
            shifts=tensors["shifts"],
            held=tensors["held"],
            space=space,
            columns={str(name): int(column) for name, column in facts["columns"].items()},
            words=words,
            **neighbours,
        )
        check_learnt(head.columns, state.space, state.place)
        head = replace(head, columns={name: head.columns[name] for name in state.space.names})
        return cls._of(head, state.space, state.fit, **state.parameters)

    def _edit(self, space: LabelSpace, change: Change) -> None:
        self.head_ = self.head_.edited(change)
        super()._edit(space, change)


def _vector(member: BiEncoderClassifier, text: str) -> Matrix:
    return own_vectors(member.encoder_, Documents([text], Kind.TEXTS))
