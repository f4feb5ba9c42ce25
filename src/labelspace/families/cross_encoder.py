"""`CrossEncoder`: a model that reads a text and a label together; pairs in, logits out.

It opens a transformers checkpoint for sequence classification, or a folder written by `labelspace train-nli`.
"""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelspace.config import EncodingConfig
from labelspace.encoders.opening import NO_LIMIT, opening, padded_table
from labelspace.encoders.precision import choose_device, choose_dtype
from labelspace.encoders.resolve import check_remote_code, resolve
from labelspace.encoders.side_by_side import side_by_side
from labelspace.errors import EncoderError, InputError
from labelspace.families.first_token import keep_first_token
from labelspace.families.pairs import PairLayout, PairPlan, check_labels_fit, plan_pairs, tokenize
from labelspace.header import CLASSIFIER, ENCODER, NLI, UNFINISHED, kind_of, refuse_kinds
from labelspace.progress import Progress, silent

NLI_CLASSES = {"entailment": 0, "neutral": 1, "contradiction": 2}
TOKEN_BUDGET = 2048

# Pairs planned together: enough to sort well by length, few enough to hold in memory.
WINDOW = 16_384


@final
class CrossEncoder:
    """A sequence-classification model; (text, label) pairs in, float32 logits out.

    Pairs are sorted by length within a window, run in batches under a token budget, and returned in the order of input;
    memory does not grow with the number of texts. If a pair is too long, the end of its text is cut, never its label.

    In bfloat16 the classification head and the logits stay float32: bfloat16 numbers near 5 are 0.03 apart, and many
    labels would tie. Even so the third digit of a logit can change with the other pairs of its batch; use
    `dtype="float32"` where that matters.

    Create one with `CrossEncoder.load`.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        name: str,
        weights: Path,
        kind: str,
        classes: int,
        class_names: Mapping[int, frozenset[str]],
        dtype: torch.dtype,
        device: torch.device,
        token_budget: int,
        max_tokens: int,
    ) -> None:
        self.model = model.to(device).eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name = name
        self.weights = weights
        self.kind = kind
        self.classes = classes
        self.class_names = class_names
        self.device = device
        self.token_budget = token_budget
        self.max_tokens = max_tokens
        self.layout = PairLayout.learn(tokenizer)
        self._dtype = dtype
        reader: Any = model.backbone if kind == NLI else model
        self._reads_types = "token_type_ids" in inspect.signature(reader.forward).parameters
        self._end_token = _end_token(model)

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        dtype: str = EncodingConfig.dtype,
        device: str = EncodingConfig.device,
        trust_remote_code: bool = False,
        revision: str | None = None,
        offline: bool | None = None,
        token_budget: int = TOKEN_BUDGET,
        max_tokens: int | None = None,
    ) -> "CrossEncoder":
        """Open a model by folder or hub name, with weights from safetensors only.

        Args:
            name: a folder of transformers or of `labelspace train-nli`, or a hub name.
            dtype: `"auto"`, `"float32"` or `"bfloat16"`.
            device: a torch device, or `"auto"`.
            trust_remote_code: True allows the model to run its own code.
            revision: revision of the hub repository.
            offline: True never contacts the hub.
            token_budget: most tokens of a batch, padding included.
            max_tokens: most tokens of a pair, special tokens included; None: the encoder's limit.

        Raises:
            EncoderNotFoundError: no folder, package or hub repository has this name.
            RemoteCodeError: the model brings code and `trust_remote_code` is False.
            EncoderError: the model cannot be opened, has no classification head, or joins pairs in an unknown way.
            ModelFolderError: a folder written by labelspace is damaged.
            ConfigError: an option is invalid.
        """
        EncodingConfig(dtype=dtype, device=device, max_tokens=max_tokens, token_budget=token_budget)
        folder = find_folder(name, trust_remote_code=trust_remote_code, revision=revision, offline=offline)
        chosen = choose_device(device)
        precision = choose_dtype(dtype, chosen)
        if is_nli_folder(folder):
            from labelspace.training.nli.model import NLIModel

            model: Any = NLIModel.load(folder, dtype="float32", device="cpu", trust_remote_code=trust_remote_code)
            tokenizer, base, kind = model.tokenizer, model.backbone, NLI
            class_names = _names_of_classes({}, NLI_CLASSES) if model.variant == "triplet" else {}
            classes = len(class_names) or 1
        else:
            model, tokenizer = _open(folder, trust_remote_code)
            base, kind = model.base_model, "sequence-classification"
            class_names = _names_of_classes(model.config.id2label or {}, model.config.label2id or {})
            classes = int(model.config.num_labels)
        # The model's own limit, even if training read fewer tokens: at test nothing is cut by hand (BTZSC, A.3).
        limit = _read_limit(base, tokenizer)
        if max_tokens is not None and max_tokens > limit:
            raise EncoderError(f"max_tokens is more than {name} can read ({limit}). Got {max_tokens} instead.")
        if tokenizer.pad_token_id is None:
            raise EncoderError(f"the tokenizer of {name} has no padding token; add one to its tokenizer_config.json.")
        if base.config.pad_token_id is None:  # models that classify by the last token read it from here
            base.config.pad_token_id = tokenizer.pad_token_id
        keep_first_token(model.eval(), base)  # before the precision is lowered: the trial compares logits
        if precision is torch.bfloat16:
            _lower_precision(model, base)
        return cls(
            model,
            tokenizer,
            name=str(name),
            weights=folder,
            kind=kind,
            classes=classes,
            class_names=class_names,
            dtype=precision,
            device=chosen,
            token_budget=token_budget,
            max_tokens=max_tokens or limit,
        )

    @property
    def dtype(self) -> str:
        """The chosen precision, `"bfloat16"` or `"float32"`."""
        return str(self._dtype).removeprefix("torch.")

    @property
    def parameters(self) -> int:
        """The number of weights of the model."""
        return sum(weight.numel() for weight in self.model.parameters())

    def logits(
        self, texts: Sequence[str], labels: Sequence[str], *, report: Progress = silent
    ) -> Iterator[NDArray[np.float32]]:
        """Compute the logits of every text with every label, in constant memory.

        Args:
            texts: the first of each pair.
            labels: the second of each pair.
            report: called with the number of pairs done.

        Yields:
            [text label class] float32, block by block, in the order of `texts`.

        Raises:
            InputError: a text is not a string, or a label leaves no room for the text.
        """
        check_texts("texts", texts)
        check_texts("labels", labels)
        if not len(texts) or not len(labels):
            return
        label_ids = self._tokenize(labels)
        check_labels_fit(labels, label_ids, self.layout, self.max_tokens)
        size = max(1, WINDOW // len(labels))  # a text with more labels than the window is planned alone
        total = len(texts) * len(labels)
        for start in range(0, len(texts), size):
            text_ids = self._tokenize(texts[start : start + size])
            of = [(text, label) for text in range(len(text_ids)) for label in range(len(labels))]
            block = self._run(self._plan(text_ids, label_ids, of), start * len(labels), total, report)
            yield block.reshape(len(text_ids), len(labels), self.classes)

    def pair_logits(
        self, firsts: Sequence[str], seconds: Sequence[str], *, report: Progress = silent
    ) -> Iterator[NDArray[np.float32]]:
        """Compute the logits of `firsts[i]` with `seconds[i]`, in constant memory.

        Args:
            firsts: the first of each pair, a premise.
            seconds: the second of each pair, a hypothesis; never cut.
            report: called with the number of pairs done.

        Yields:
            [pair class] float32, block by block, in the order of the pairs.

        Raises:
            InputError: the lengths differ, a text is not a string, or a hypothesis leaves no room for its premise.
        """
        check_pairs(firsts, seconds)
        for start in range(0, len(firsts), WINDOW):
            part = seconds[start : start + WINDOW]
            first_ids, second_ids = self._tokenize(firsts[start : start + WINDOW]), self._tokenize(part)
            check_labels_fit(part, second_ids, self.layout, self.max_tokens)
            of = [(place, place) for place in range(len(part))]
            yield self._run(self._plan(first_ids, second_ids, of), start, len(firsts), report)

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        ids = tokenize(self.tokenizer, texts)
        if self._end_token is None:
            return ids
        # An end token inside a text would be read as the end of the pair.
        return [[token for token in row if token != self._end_token] for row in ids]

    def _plan(self, texts: list[list[int]], labels: list[list[int]], of: list[tuple[int, int]]) -> PairPlan:
        return plan_pairs(texts, labels, of, layout=self.layout, limit=self.max_tokens, token_budget=self.token_budget)

    def _run(self, plan: PairPlan, done: int, total: int, report: Progress) -> NDArray[np.float32]:
        logits = np.empty((len(plan.of), self.classes), dtype=np.float32)

        def work(pairs: list[int]) -> NDArray[np.float32]:
            arguments = {name: ids.to(self.device) for name, ids in plan.batch(pairs, self.tokenizer).items()}
            if not self._reads_types:
                arguments.pop("token_type_ids", None)
            answer = self.model(**arguments)
            answer = answer if isinstance(answer, Tensor) else answer.logits
            return answer.float().reshape(len(pairs), self.classes).cpu().numpy()

        for pairs, block in side_by_side(work, plan.batches, self.device):
            logits[pairs] = block
            done += len(pairs)
            report(done, total)
        return logits

    def describe(self) -> dict[str, Any]:
        """Return name, kind, precision and sizes, for a log or a result file."""
        return {
            "name": self.name,
            "kind": self.kind,
            "classes": self.classes,
            "max_tokens": self.max_tokens,
            "dtype": self.dtype,
            "parameters": self.parameters,
        }

    def __repr__(self) -> str:
        return f"CrossEncoder({self.name!r}, classes={self.classes}, dtype={self.dtype!r})"


def find_folder(
    name: str | Path, *, trust_remote_code: bool, revision: str | None = None, offline: bool | None = None
) -> Path:
    """Find a model's folder; remote code and pickled weights are refused, see `encoders.resolve`.

    Raises:
        ModelFolderError: a folder written by labelspace holds another kind of model, or is damaged.
    """
    folder = Path(name).expanduser()
    refuse_kinds(folder, "a model that scores pairs or prompts", (CLASSIFIER, ENCODER, UNFINISHED))
    if is_nli_folder(folder):
        return folder
    check_remote_code(str(name), trust_remote_code)
    found = resolve(str(name), revision=revision, offline=offline)
    check_remote_code(found, trust_remote_code)
    return Path(found.path_or_name)


def is_nli_folder(folder: Path) -> bool:
    """Return whether NLI training wrote the folder."""
    return kind_of(folder) == NLI


def architectures(folder: Path) -> list[str]:
    """Return the model classes that `config.json` names."""
    return [str(name) for name in _read_json(folder / "config.json").get("architectures") or []]


def check_texts(what: str, texts: Sequence[str]) -> None:
    """Raise InputError unless `texts` is a collection of strings."""
    if isinstance(texts, str):
        raise InputError(f"{what} is a single str, not a collection of texts; pass [text] for one text.")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{what} must be strings. Got {type(text).__name__} at place {place} instead.")


def check_pairs(premises: Sequence[str], hypotheses: Sequence[str]) -> None:
    """Raise InputError unless both are collections of strings, of the same length."""
    check_texts("premises", premises)
    check_texts("hypotheses", hypotheses)
    if len(premises) != len(hypotheses):
        raise InputError(f"each premise needs one hypothesis. Got {len(premises)} and {len(hypotheses)} instead.")


def _open(folder: Path, trust_remote_code: bool) -> tuple[Any, Any]:
    """Open a transformers checkpoint whose classification head is in its file."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    options: dict[str, Any] = {"trust_remote_code": trust_remote_code, "local_files_only": not trust_remote_code}
    with opening(folder, "sequence-classification model"):
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model, told = AutoModelForSequenceClassification.from_pretrained(
            folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **options
        )
    # transformers would fill missing weights with random numbers.
    missing = sorted(set(told["missing_keys"]) & {key for key, _ in model.named_parameters()})
    if missing:
        raise EncoderError(
            f"{str(folder)!r} lacks weights that classifying pairs needs ({', '.join(missing[:3])}); "
            "it is no cross-encoder. Pass one, or train one from it with labelspace train-nli."
        )
    return model, tokenizer


def _read_json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # includes UnicodeDecodeError
        raise EncoderError(f"{path} is not JSON ({error}); the model's folder is damaged.") from error
    return content if isinstance(content, Mapping) else {}


def _names_of_classes(id2label: Mapping[Any, Any], label2id: Mapping[Any, Any]) -> dict[int, frozenset[str]]:
    """Return all lower-case names of each class; the two tables of a configuration may differ."""
    named = [(int(index), str(name)) for index, name in id2label.items()]
    named += [(int(index), str(name)) for name, index in label2id.items()]
    return {
        index: frozenset(name.strip().lower() for other, name in named if other == index)
        for index in sorted({index for index, _ in named})
    }


def _read_limit(model: Any, tokenizer: Any) -> int:
    """Return the most tokens that the tokenizer and the position table both allow."""
    limit = int(tokenizer.model_max_length)
    positions = padded_table(model) or getattr(model.config, "max_position_embeddings", None)
    if limit > NO_LIMIT:
        return int(positions or 512)
    return min(limit, int(positions)) if positions else limit


def _end_token(model: nn.Module) -> int | None:
    """Return the end token of BART and T5, which classify by its last state and need equally many in every row."""
    config: Any = getattr(model, "config", None)
    return config.eos_token_id if getattr(config, "is_encoder_decoder", False) else None


def _lower_precision(model: nn.Module, base: nn.Module) -> None:
    """Turn the transformer's weights into bfloat16, in place; the head stays in float32."""
    for weight in base.parameters():  # not the buffers: rotary frequencies need their digits
        weight.data = weight.data.to(torch.bfloat16)
    for child in model.children():
        if child is not base:
            child.register_forward_pre_hook(_in_float32)


def _in_float32(_module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        value.float() if isinstance(value, Tensor) and value.is_floating_point() else value for value in inputs
    )
