"""The trainable weights: all, only the upper layers, or low-rank adapters."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from labelspace.checks import import_optional
from labelspace.errors import ConfigError, own_filters
from labelspace.training.gradients import seeded

if TYPE_CHECKING:
    from labelspace.encoders.backbone import Backbone


def layers_of(backbone: "Backbone") -> nn.ModuleList:
    """Return the transformer's stack of layers, lowest first.

    Raises:
        ConfigError: this architecture has no such stack.
    """
    model = backbone.transformer.model
    count = getattr(model.config, "num_hidden_layers", None)
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise ConfigError("freeze_layers needs an encoder with a stack of layers, and none was found; set it to 0.")


@contextmanager
def trainable_weights(
    backbone: "Backbone", *, freeze_layers: int = 0, lora_rank: int | None = None, seed: int = 0
) -> Iterator[list[tuple[str, nn.Parameter]]]:
    """Yield the trainable named parameters; afterwards the encoder is a plain one again.

    Args:
        backbone: the encoder; adapters are merged into its weights at the end.
        freeze_layers: number of lower layers to freeze, together with the word embeddings below them.
        lora_rank: trains adapters of this rank in every linear layer instead of the weights.
        seed: seed of the adapters' initial weights.

    Raises:
        ConfigError: there are fewer layers than should be frozen.
        MissingDependencyError: `lora_rank` without the package peft.
    """
    model: nn.Module = backbone.model
    required = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    adapted: Any = None
    try:
        if lora_rank is not None:
            adapted = _add_adapters(backbone, lora_rank, seed)
        elif freeze_layers:
            _freeze(backbone, freeze_layers)
        yield [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    finally:
        if adapted is not None:
            backbone.transformer.model = adapted.merge_and_unload()
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(required.get(name, True))
            parameter.grad = None
        backbone.weights_changed()


def _freeze(backbone: "Backbone", count: int) -> None:
    layers = layers_of(backbone)
    if count > len(layers):
        raise ConfigError(f"freeze_layers is more than the encoder's {len(layers)} layers. Got {count} instead.")
    above: set[int] = {id(parameter) for layer in layers[count:] for parameter in layer.parameters()}
    in_stack: set[int] = {id(parameter) for layer in layers for parameter in layer.parameters()}
    embeddings = {id(parameter) for parameter in backbone.transformer.model.get_input_embeddings().parameters()}
    for name, parameter in backbone.transformer.model.named_parameters():
        below = id(parameter) in embeddings or name.startswith("embeddings.")
        if below or (id(parameter) in in_stack and id(parameter) not in above):
            parameter.requires_grad_(False)


def _add_adapters(backbone: "Backbone", rank: int, seed: int) -> Any:
    peft = import_optional("peft", package="peft", extra="lora", purpose="Training with LoRA (lora_rank)")
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    with seeded(backbone.device, seed, "lora"), own_filters():
        warnings.simplefilter("ignore", FutureWarning)  # peft's use of transformers is for peft to fix
        adapted = peft.get_peft_model(backbone.transformer.model, config)
    backbone.transformer.model = adapted
    return adapted


def snapshot(weights: list[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """Copy the values of some weights."""
    return {name: parameter.detach().clone() for name, parameter in weights}


def restore(weights: list[tuple[str, nn.Parameter]], values: dict[str, Tensor]) -> None:
    """Copy the values back, in place."""
    for name, parameter in weights:
        parameter.data.copy_(values[name])
