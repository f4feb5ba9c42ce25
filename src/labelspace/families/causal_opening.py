"""Open a language model from safetensors or GGUF, with a one-line error for anything else."""

import io
from contextlib import redirect_stderr
from typing import Any

import torch

from labelspace.checks import import_optional
from labelspace.encoders.opening import opening
from labelspace.errors import EncoderError


def open_causal(folder: str, dtype: torch.dtype, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return a model and its tokenizer; refuse pickled and missing weights."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.utils import quantization_config

    model_options: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, "output_loading_info": True, **options}
    if "gguf_file" in options:
        for package in ("gguf", "accelerate"):
            import_optional(package, package=package, extra="bench", purpose="A language model in a GGUF file")
        # Newer versions keep some weights quantized and download compiled kernels from the hub for them.
        if hasattr(quantization_config, "GgufConfig"):
            model_options["quantization_config"] = quantization_config.GgufConfig(dequantize=True)
    # The progress bar of the GGUF reader cannot be turned off.
    with (
        opening(folder, "language model", holds="a decoder-only model in safetensors or GGUF"),
        redirect_stderr(io.StringIO()),
    ):
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        loaded: Any = AutoModelForCausalLM.from_pretrained(folder, **model_options)
        model, info = loaded
    if info["missing_keys"]:
        raise EncoderError(
            f"{folder!r} is no language model: it lacks {sorted(info['missing_keys'])[0]!r}. "
            "Pass a decoder-only model with its head, such as Qwen/Qwen3-0.6B."
        )
    # Whatever a question leaves open would come from here: sampling, penalties, strings to stop at.
    model.generation_config = GenerationConfig()
    return model.eval().requires_grad_(False), tokenizer
