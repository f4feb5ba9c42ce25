"""The fixed strings of the BTZSC benchmark's prompts for decoder-only models (appendices C.2 and C.3).

Pure functions of strings, without tokenizer or model. Our copy of the paper is OCR; these are the garbled places and
how they are read here:

    C.2  "<|im_end]|>"                             <|im_end|>
         "(Instruct): I", "(Query): q", ...        <Instruct>: I, <Query>: q, <Document>: d, as Qwen's own code has them
         the line breaks around the think block    as in Qwen's own code: "<think>", empty line, "</think>", empty line
         the break after "Query" in the prefix     a blank: it is one line, broken for the page
         "entails the text the" (NLI retrieval)    "entails the text.": the last word belongs to the column beside it
    C.3  "FEach option", "— Answer"                "Each option", "- Answer"
         "(Text): x + (Options): O"                the "Text and options format" that follows it

Reference:
    BTZSC benchmark, appendices C.2 and C.3.
"""

from collections.abc import Sequence

CHOICE_INSTRUCTIONS = """\
You are a text classifier.

You will be given a text and several mutually exclusive options.
Each option is prefixed by a single letter (e.g. A, b, ...).
Your task is to choose the single best option.

IMPORTANT:
- Answer with EXACTLY ONE LETTER used to prefix the options.
- Do NOT output any words, punctuation, or explanation."""
"""System instructions of the multiple-choice prompt (C.3)."""

CHOICE_SUFFIX = "Answer: The correct option is letter"
"""End of the multiple-choice prompt; the next token is the answer (C.3)."""

JUDGE_INSTRUCTIONS = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".'
)
"""System instructions of the Qwen3 reranker (C.2)."""

JUDGE_PREFIX = f"<|im_start|>system\n{JUDGE_INSTRUCTIONS}<|im_end|>\n<|im_start|>user\n"
"""Beginning of the Qwen3 reranker's prompt (C.2)."""

JUDGE_SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
"""End of the Qwen3 reranker's prompt; the next token is yes or no (C.2)."""

LABEL_RETRIEVAL = "Given a piece of text, retrieve relevant label descriptions that best match the text."
"""The default instruction (C.2)."""

NLI_RETRIEVAL = "Given a piece of text, retrieve the passage that entails the text."
"""The paper's other instruction, for verbalizers that are hypotheses (C.2)."""

ENTAILMENT_OPTIONS = ("The premise entails the hypothesis.", "The premise does not entail the hypothesis.")
"""The options for a pair of sentences, entailment first. Our own: the paper does not give those for language models."""


def pair_text(premise: str, hypothesis: str) -> str:
    r"""Return a pair of sentences as the text of a multiple-choice question with `ENTAILMENT_OPTIONS`; our own form.

    Example:
        >>> pair_text("It rains.", "It is wet.")
        'Premise: It rains.\nHypothesis: It is wet.'
    """
    return f"Premise: {premise}\nHypothesis: {hypothesis}"


def choice_question(text: str, symbols: Sequence[str], verbalizers: Sequence[str]) -> str:
    r"""Return the text and its options as the user's question (C.3, "Text and options format").

    Args:
        text: the text to classify.
        symbols: the symbol before each option.
        verbalizers: the labels' texts, in the order of the label space.

    Returns:
        The question without instructions and suffix; it ends in an empty line.

    Example:
        >>> choice_question("We won.", ["A", "B"], ["It is about sports.", "It is about politics."])
        'TEXT:\nWe won.\n\nOPTIONS:\nA) It is about sports.\nB) It is about politics.\n\n'
    """
    options = "".join(f"{symbol}) {verbalizer}\n" for symbol, verbalizer in zip(symbols, verbalizers, strict=True))
    return f"TEXT:\n{text}\n\nOPTIONS:\n{options}\n"


def choice_prompt(text: str, symbols: Sequence[str], verbalizers: Sequence[str]) -> str:
    """Return the whole multiple-choice prompt for a model without a chat template (C.3).

    Args:
        text: the text to classify.
        symbols: the symbol before each option.
        verbalizers: the labels' texts.

    Returns:
        Instructions, text, options and suffix.

    Example:
        >>> print(choice_prompt("We won.", ["A", "B"], ["sports", "politics"]).partition("explanation.")[2])
        <BLANKLINE>
        <BLANKLINE>
        TEXT:
        We won.
        <BLANKLINE>
        OPTIONS:
        A) sports
        B) politics
        <BLANKLINE>
        Answer: The correct option is letter
    """
    return f"{CHOICE_INSTRUCTIONS}\n\n{choice_question(text, symbols, verbalizers)}{CHOICE_SUFFIX}"


def judge_question(instruction: str, query: str, document: str) -> str:
    r"""Return instruction, query and document in the form that the reranker was trained on (C.2).

    Args:
        instruction: what to retrieve.
        query: the text to classify.
        document: a label's text.

    Example:
        >>> judge_question("Find the label.", "We won.", "sports")
        '<Instruct>: Find the label.\n<Query>: We won.\n<Document>: sports'
    """
    return f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"


def judge_prompt(instruction: str, query: str, document: str) -> str:
    """Return the whole prompt of the Qwen3 reranker for one text and one label (C.2).

    Args:
        instruction: what to retrieve.
        query: the text to classify.
        document: a label's text.

    Example:
        >>> judge_prompt("Find the label.", "We won.", "sports").startswith("<|im_start|>system")
        True
    """
    return f"{JUDGE_PREFIX}{judge_question(instruction, query, document)}{JUDGE_SUFFIX}"


def judge_prompt_without_markers(instruction: str, query: str, document: str) -> str:
    r"""Return the reranker's prompt for a model with neither `<|im_start|>` nor a chat template.

    The paper has no such case. The words are the same, without markers; a line `Answer:` takes the place of the
    assistant's turn.

    Args:
        instruction: what to retrieve.
        query: the text to classify.
        document: a label's text.

    Example:
        >>> judge_prompt_without_markers("Find the label.", "We won.", "sports")[-29:]
        '\n<Document>: sports\n\nAnswer:\n'
    """
    return f"{JUDGE_INSTRUCTIONS}\n\n{judge_question(instruction, query, document)}\n\nAnswer:\n"
