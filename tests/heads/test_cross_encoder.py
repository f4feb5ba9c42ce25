"""The head of the cross-encoder: C.1 as loops, the entailment score, shapes and refusals."""

import math

import pytest
import torch

from heads.layers_by_hand import linear
from labelspace.errors import ConfigError, ShapeError
from labelspace.heads import CrossEncoderHead, entailment_score
from shape_checked import imported_anew

TABLE = [[2.0, -1.0, 0.5], [0.0, 0.0, 0.0], [-3.0, 4.0, 1.0], [30.0, -40.0, 20.0]]


def made_from(seed: int) -> CrossEncoderHead:
    return CrossEncoderHead(32, classes=3, generator=torch.Generator().manual_seed(seed))


def head_by_hand(head: CrossEncoderHead, state: list[float]) -> list[float]:
    """C.1 term by term, without dropout: GELU by the error function, layer norm with the biased variance."""
    hidden = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in linear(head.inner, state)]
    mean = sum(hidden) / len(hidden)
    spread = math.sqrt(sum((v - mean) ** 2 for v in hidden) / len(hidden) + head.norm.eps)
    scaled = zip(hidden, head.norm.weight.tolist(), head.norm.bias.tolist(), strict=True)
    return linear(head.outer, [(v - mean) / spread * gain + shift for v, gain, shift in scaled])


@pytest.fixture
def head() -> CrossEncoderHead:
    generator = torch.Generator().manual_seed(0)
    made = CrossEncoderHead(6, classes=3, generator=generator)
    for weight in made.parameters():  # layer norm starts at 1 and 0, which would hide a missing term
        torch.nn.init.normal_(weight, generator=generator)
    return made.eval()


def test_initial_values_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = (made_from(seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.inner.weight, again.inner.weight)
    assert not torch.equal(first.inner.weight, other.inner.weight)
    assert not torch.equal(first.outer.weight, other.outer.weight)


def test_initial_values_are_those_of_torch():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        plain = [torch.nn.Linear(32, 32), torch.nn.Linear(32, 3)]
    made = made_from(5)
    for layer, own in zip(plain, (made.inner, made.outer), strict=True):
        torch.testing.assert_close(own.state_dict(), layer.state_dict())


def test_the_head_equals_the_formula_written_out(head):
    states = torch.linspace(-2, 2, 12).view(2, 6)
    expected = [head_by_hand(head, row) for row in states.tolist()]
    torch.testing.assert_close(head(states), torch.tensor(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_states_are_brought_to_the_type_of_the_weights(head, kind):
    states = torch.linspace(-2, 2, 12).view(2, 6).to(kind)
    assert torch.equal(head(states), head(states.float()))
    assert head.to(kind)(states.float()).dtype is kind


def test_dropout_acts_on_the_state_in_training_only(head):
    head.dropout.p = 0.5
    states = torch.ones(64, 6)
    assert head(states).std(dim=0).max() < 1e-5
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        logits = head.train()(states)
    kept = {tuple(row) for row in head.dropout(torch.ones(64, 6)).unique().view(-1, 1).tolist()}
    assert kept == {(0.0,), (2.0,)}
    assert logits.std(dim=0).min() > 1e-2


@pytest.mark.parametrize(("classes", "outputs"), [(1, 1), (3, 3)])
def test_the_last_layer_has_one_row_for_each_class(classes, outputs):
    made = CrossEncoderHead(4, classes=classes, generator=torch.Generator())
    assert made.outer.weight.shape == (outputs, 4)
    assert made(torch.zeros(5, 4)).shape == (5, outputs)


def test_the_score_of_one_logit_is_the_logit():
    logits = torch.tensor([[0.5], [-7.0]])
    assert torch.equal(entailment_score(logits), logits[:, 0])


def test_the_score_of_three_equals_the_formula_written_out():
    expected = [row[0] - math.log(math.exp(row[1]) + math.exp(row[2])) for row in TABLE]
    torch.testing.assert_close(entailment_score(torch.tensor(TABLE)), torch.tensor(expected))


def test_the_sigmoid_of_the_score_is_the_softmax_of_entailment():
    logits = torch.tensor(TABLE, dtype=torch.float64)
    torch.testing.assert_close(entailment_score(logits).sigmoid(), logits.softmax(dim=1)[:, 0])


def test_the_score_ignores_a_constant_and_stays_finite_at_the_extremes():
    logits = torch.tensor(TABLE)
    torch.testing.assert_close(entailment_score(logits + 5), entailment_score(logits), rtol=1e-5, atol=1e-5)
    assert torch.isfinite(entailment_score(torch.tensor([[1e38, -1e38, -1e38], [-1e30, 1e30, 1e30]]))).all()


def test_the_gradient_of_head_and_score_is_that_of_finite_differences(head):
    states = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda rows: entailment_score(head.double()(rows)), (states,))


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_an_invalid_number_of_classes_is_refused(classes):
    with pytest.raises(ConfigError, match=r"classes must be one of 1, 3\. Got"):
        CrossEncoderHead(4, classes=classes, generator=torch.Generator())


def test_a_width_or_a_dropout_out_of_range_is_refused():
    with pytest.raises(ConfigError, match="dim"):
        CrossEncoderHead(0, classes=1, generator=torch.Generator())
    with pytest.raises(ConfigError, match="dropout"):
        CrossEncoderHead(
            4, classes=1, generator=torch.Generator(), dropout=1.0
        )  # dropout would leave nothing to learn from


@pytest.mark.parametrize("shape", [(4,), (2, 3), (1, 2, 4)], ids=str)
def test_states_of_another_shape_are_refused(shape):
    with pytest.raises(ShapeError, match=r"\[pair dim\] with 4 columns"):
        CrossEncoderHead(4, classes=1, generator=torch.Generator())(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(3,), (2, 2), (2, 4)], ids=str)
def test_logits_of_another_shape_are_refused(shape):
    with pytest.raises(ShapeError, match="1 or 3 columns"):
        entailment_score(torch.zeros(shape))


def test_the_shapes_hold_under_the_checking_hook():
    checked = imported_anew("labelspace.heads.cross_encoder", "labelspace.heads.cross_encoder")
    made = checked.CrossEncoderHead(4, classes=3, generator=torch.Generator())
    assert checked.entailment_score(made(torch.zeros(2, 4))).shape == (2,)
    with pytest.raises(Exception, match="entailment_score"):
        checked.entailment_score(torch.zeros(2, 3, dtype=torch.int64))
