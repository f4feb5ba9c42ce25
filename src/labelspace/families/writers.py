"""Language models that write a short answer: hosted, through the protocol of OpenAI's chat completions, or local.

Both write what they find likeliest. A local model repeats its answer bit for bit on the same machine; a server is sent
a seed and the temperature 0, unless it refuses them.
"""

from typing import Any, Protocol, final

import torch

from labelspace.errors import ConfigError, EncoderError
from labelspace.families.causal import CausalModel
from labelspace.families.endpoint_address import address_of, import_client, key_for
from labelspace.families.endpoint_errors import in_our_words

TIMEOUT, RETRIES = 120.0, 5
HOSTED, LOCAL = "openai:", "llm:"


class Writer(Protocol):
    """A language model that answers a question."""

    def write(self, system: str, user: str, *, schema: dict[str, Any], most_tokens: int) -> str:
        """Return the answer to a question.

        Args:
            system: the instructions.
            user: the question.
            schema: JSON schema of the answer, for a server that takes one.
            most_tokens: maximum number of tokens that a local model writes.
        """
        ...


def open_writer(model: str, *, seed: int = 0, device: str = "auto", offline: bool | None = None) -> Writer:
    """Open a language model by `openai:MODEL[@URL]` or `llm:NAME[#FILE]`.

    Args:
        model: its name; FILE is a GGUF file in a folder or hub repository.
        seed: the seed that a server is sent; a local model needs none.
        device: a torch device, or `"auto"`, of a local model.
        offline: True never contacts the hub.

    Raises:
        ConfigError: the name has another form, or a hosted model has no usable URL or no key.
        EncoderError: a local model cannot be opened.
        MissingDependencyError: the package openai is not installed.
    """
    if model.startswith(HOSTED):
        return HostedWriter(model.removeprefix(HOSTED), seed=seed)
    name, _, file = model.removeprefix(LOCAL).partition("#")
    if not model.startswith(LOCAL) or not name:
        raise ConfigError(
            "model must be openai:MODEL, openai:MODEL@URL, llm:NAME or llm:NAME#FILE. Got another form; "
            "write it like llm:Qwen/Qwen3-0.6B."
        )
    return LocalWriter(CausalModel.load(name, device=device, offline=offline, gguf_file=file or None))


@final
class HostedWriter:
    """A hosted model. The first request finds out which options its server takes."""

    def __init__(self, name: str, *, seed: int) -> None:
        self.model, self.url = address_of(name)
        self.name, self.seed = name, seed
        self._openai = import_client()
        self._client = self._openai.OpenAI(
            base_url=self.url, api_key=key_for(self.url), timeout=TIMEOUT, max_retries=RETRIES
        )
        self._taken: int | None = None

    def write(self, system: str, user: str, *, schema: dict[str, Any], most_tokens: int) -> str:  # noqa: ARG002
        """Return the answer; empty if there is none."""
        form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        steady = {"temperature": 0.0, "seed": self.seed}
        ways = [{"response_format": form, **steady}, {"response_format": form}, steady, {}]
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        tried = range(len(ways)) if self._taken is None else [self._taken]
        refused: Any = None
        for way in tried:
            try:
                answer = self._client.chat.completions.create(model=self.model, messages=messages, **ways[way])
                content = answer.choices[0].message.content
            except (self._openai.BadRequestError, self._openai.UnprocessableEntityError) as error:
                refused = error
                continue
            except self._openai.OpenAIError as error:
                raise self._told(error) from None
            except (ValueError, AttributeError, IndexError, TypeError):  # no JSON, or another form of it
                raise EncoderError(
                    f"{HOSTED}{self.name} did not answer in the form of chat completions; check the URL, which often "
                    "ends in /v1."
                ) from None
            self._taken = way
            return content or ""
        raise self._told(refused) from None

    def _told(self, error: Any) -> EncoderError:
        return in_our_words(error, f"{HOSTED}{self.name}", url=self.url, retries=RETRIES, timeout=TIMEOUT)


@final
class LocalWriter:
    """A language model on this machine, which writes its likeliest next token until a special one."""

    def __init__(self, model: CausalModel) -> None:
        self.model = model

    def write(self, system: str, user: str, *, schema: dict[str, Any], most_tokens: int) -> str:  # noqa: ARG002
        """Return the answer."""
        ids = self.model.encode([self.prompt(system, user)])[0]
        if len(ids) + most_tokens > self.model.max_tokens:
            raise EncoderError(
                f"{LOCAL}{self.model.name} reads {self.model.max_tokens} tokens, and a question of {len(ids)} with an "
                f"answer of {most_tokens} is longer; ask for fewer descriptions, or show fewer documents."
            )
        return self._continue(ids, most_tokens)

    def prompt(self, system: str, user: str) -> str:
        """Return the question as the model reads it; no text in it can speak for the assistant."""
        system, user = self.model.without_markers(system), self.model.without_markers(user)
        if self.model.has_chat_template:
            return self.model.chat(system, user)
        return f"{system}\n\n{user}\n\nAnswer:\n"

    @torch.inference_mode()
    def _continue(self, ids: list[int], most_tokens: int) -> str:
        from transformers import GenerationConfig

        tokenizer = self.model.tokenizer
        added = tokenizer.added_tokens_decoder.items()
        ends = sorted({*tokenizer.all_special_ids, *(number for number, token in added if token.special)})
        greedy = GenerationConfig(
            do_sample=False, max_new_tokens=most_tokens, eos_token_id=ends, pad_token_id=ends[0] if ends else 0
        )
        given = torch.tensor([ids], device=self.model.device)
        written = self.model.model.generate(
            input_ids=given, attention_mask=torch.ones_like(given), generation_config=greedy
        )
        return str(tokenizer.decode(written[0, len(ids) :], skip_special_tokens=True))
