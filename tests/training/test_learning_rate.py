"""The learning rate is given, published for the encoder, or the one whose trial leaves the pool most uniform."""

import warnings
from collections.abc import Callable

import pytest
import torch

from labelspace.config import FALLBACK_LEARNING_RATE, PAPER_LEARNING_RATES, SearchConfig, TrainingConfig
from labelspace.corpus import Pool, sample_pool
from labelspace.encoders import Encoder
from labelspace.encoders.registry import find_spec
from labelspace.errors import LabelSpaceWarning, TrainingError
from labelspace.geometry import sample_pairs, uniformity
from labelspace.labels import LabelSpace
from labelspace.training import FitResult, train_on_descriptions
from labelspace.training.description.learning_rate import PoolUniformity, choose_learning_rate
from labelspace.training.description.sweep import build_sweep
from labelspace.training.trainable import trainable_weights
from stops import stop_at
from training.conftest import POOL
from weights import same_bits, weights_of

RATES = (1e-5, 1e-3, 3e-2, 0.3)
GRID = SearchConfig(rates=RATES, strategy="grid", steps=3)


@pytest.fixture
def pool() -> Pool:
    return sample_pool(POOL, size=100, seed=0)


def fit(
    encoder: Encoder,
    space: LabelSpace,
    pool: Pool | None = None,
    search: SearchConfig = GRID,
    seed: int = 0,
    callbacks: tuple = (),
    **options: object,
) -> FitResult:
    config = TrainingConfig(**{"max_steps": 2, **options})  # type: ignore[arg-type]
    return train_on_descriptions(encoder, space, config, search, pool=pool, seed=seed, callbacks=callbacks)


def test_the_grid_is_that_of_the_paper():
    """Section 4: {1, 3, 5} x {1e-4, 1e-5, 1e-6}."""
    expected = [1e-6, 3e-6, 5e-6, 1e-5, 3e-5, 5e-5, 1e-4, 3e-4, 5e-4]
    assert list(SearchConfig().rates) == pytest.approx(expected)
    assert SearchConfig().rates == PAPER_LEARNING_RATES


def test_a_given_rate_is_used_without_trials(encoder: Encoder, space: LabelSpace, pool: Pool):
    result = fit(encoder, space, pool, learning_rate=2e-4)
    assert (result.rate.learning_rate, result.rate.reason, result.rate.trials) == (2e-4, "given", ())
    assert result.curve.learning_rate == 2e-4


@pytest.mark.parametrize("asked", ["uniformity", "base"])
def test_without_a_pool_the_encoders_base_rate_is_used(asked: str, encoder: Encoder, space: LabelSpace):
    assert fit(encoder, space, learning_rate=asked).rate.learning_rate == FALLBACK_LEARNING_RATE
    encoder.spec = find_spec("Alibaba-NLP/gte-large-en-v1.5")
    assert encoder.spec is not None
    rate = fit(encoder, space, learning_rate=asked).rate
    assert rate.learning_rate == encoder.spec.base_learning_rate != FALLBACK_LEARNING_RATE
    assert rate.reason == {"uniformity": "no pool", "base": "base"}[asked]


def test_auto_uses_a_published_rate_and_searches_otherwise(
    encoder: Encoder, space: LabelSpace, pool: Pool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("labelspace.training.description.fit.choose_learning_rate", lambda *_, **__: (1e-4, ()))

    def reason(documents: Pool | None = pool, search: SearchConfig | None = None) -> str:
        return fit(encoder, space, documents, search or SearchConfig(), learning_rate="auto", max_steps=2).rate.reason

    assert reason() == "uniformity"  # no rate is published
    encoder.spec = find_spec("Alibaba-NLP/gte-large-en-v1.5")
    assert reason() == "base"
    assert reason(None) == "base"
    assert reason(search=SearchConfig(steps=3)) == "uniformity"  # a search was configured
    encoder.pooling = "cls"  # the encoder's own pooling, named explicitly
    assert reason() == "base"
    encoder.pooling = "mean"
    assert reason() == "uniformity"
    assert reason(None) == "no pool"


def test_base_is_the_base_rate_even_with_a_pool(encoder: Encoder, space: LabelSpace, pool: Pool):
    rate = fit(encoder, space, pool, learning_rate="base").rate
    assert (rate.learning_rate, rate.reason) == (FALLBACK_LEARNING_RATE, "fallback")


def test_uniformity_picks_the_minimum_of_its_trials_and_records_them_all(
    encoder: Encoder, space: LabelSpace, pool: Pool
):
    result = fit(encoder, space, pool)
    trials = result.rate.trials
    assert [trial.learning_rate for trial in trials] == list(RATES)
    assert {trial.steps for trial in trials} == {3}
    assert len({trial.uniformity for trial in trials}) == len(RATES)
    best = min(trials, key=lambda trial: trial.uniformity)
    assert result.rate.learning_rate == result.curve.learning_rate == best.learning_rate
    assert result.rate.reason == "uniformity"


def test_a_trial_is_a_short_training_from_the_untrained_weights(
    open_tiny: Callable[..., Encoder], space: LabelSpace, pool: Pool
):
    """Its uniformity is that of a fit with as many steps at its rate, regardless of earlier trials."""
    trials = fit(open_tiny(), space, pool).rate.trials
    for trial in trials[:2]:
        alone = fit(open_tiny(), space, pool, learning_rate=trial.learning_rate, max_steps=3)
        assert trial.uniformity == alone.uniformity_after
        assert trial.loss == alone.curve.losses[-1]


def test_the_search_restores_the_weights_exactly(encoder: Encoder, space: LabelSpace, pool: Pool):
    before = weights_of(encoder)
    config = TrainingConfig()
    sweep = build_sweep(encoder, space, max_tokens_in_memory=10_000)
    measure = PoolUniformity(encoder, pool, GRID, 0)
    untrained = measure()
    with trainable_weights(encoder.backbone) as weights:
        _, trials = choose_learning_rate(encoder, weights, sweep, config, GRID, measure, seed=0)
    assert max(abs(trial.uniformity - untrained) for trial in trials) > 0.01
    assert same_bits(encoder, before)
    assert measure() == untrained


def test_a_fit_after_a_search_is_the_fit_at_that_rate(open_tiny: Callable[..., Encoder], space: LabelSpace, pool: Pool):
    searched = open_tiny()
    rate = fit(searched, space, pool).rate.learning_rate
    given = open_tiny()
    fit(given, space, pool, learning_rate=rate)
    assert same_bits(searched, given)


def test_halving_tries_all_rates_briefly_and_in_full_the_best_and_the_two_below_it(
    encoder: Encoder, space: LabelSpace, pool: Pool
):
    search = SearchConfig(rates=RATES, strategy="halving", steps=4)
    result = fit(encoder, space, pool, search)
    brief, full = result.rate.trials[:4], result.rate.trials[4:]
    assert [trial.steps for trial in brief] == [1] * 4
    assert [trial.steps for trial in full] == [4] * 3
    best = max(2, min(range(4), key=lambda place: brief[place].uniformity))  # there are three in any case
    assert [trial.learning_rate for trial in full] == sorted(RATES)[best - 2 : best + 1]
    assert result.rate.learning_rate == min(full, key=lambda trial: trial.uniformity).learning_rate


def test_a_single_candidate_is_used(encoder: Encoder, space: LabelSpace, pool: Pool):
    result = fit(encoder, space, pool, SearchConfig(rates=(7e-4,), steps=2))
    assert result.rate.learning_rate == 7e-4
    assert len(result.rate.trials) == 1


def test_without_a_finite_candidate_the_error_says_so(encoder: Encoder, space: LabelSpace, pool: Pool):
    before = weights_of(encoder)
    with pytest.raises(TrainingError, match="not finite at any learning rate from 1e-05 to 3e-01"):
        fit(encoder, space, pool, temperature=1e-39)
    assert same_bits(encoder, before)


# ---- the measure


def test_the_measure_is_equation_4_on_the_pool(encoder: Encoder, pool: Pool):
    vectors = torch.from_numpy(encoder.encode(pool.texts))
    every_pair = sample_pairs(len(pool.texts), 10**6, seed=0)
    assert PoolUniformity(encoder, pool, GRID, 0)() == pytest.approx(uniformity(vectors, every_pair).item(), abs=1e-6)


def test_the_measure_reads_only_the_configured_number_of_documents(encoder: Encoder, pool: Pool):
    few = PoolUniformity(encoder, pool, SearchConfig(documents=4), 0)()
    head = Pool(texts=pool.texts[:4], seen=4, source="head")
    assert few == PoolUniformity(encoder, head, GRID, 0)()
    assert few != PoolUniformity(encoder, pool, GRID, 0)()


def test_uniformity_before_and_after_are_of_the_untrained_and_the_trained_encoder(
    encoder: Encoder, space: LabelSpace, pool: Pool
):
    measure = PoolUniformity(encoder, pool, GRID, 0)
    before = measure()
    told: list[dict[str, float]] = []
    result = fit(encoder, space, pool, learning_rate=1e-3, callbacks=(lambda step, values: told.append(values),))
    assert result.uniformity_before == before
    assert result.uniformity_after == measure() != before
    assert told[-1] == {"uniformity_before": before, "uniformity_after": result.uniformity_after}


def test_the_result_records_the_source_of_the_pool(encoder: Encoder, space: LabelSpace, pool: Pool):
    result = fit(encoder, space, pool, learning_rate=1e-3, seed=3)
    assert (result.pool, result.pool_documents, result.seed) == ("list in memory (10 documents)", 10, 3)
    without = fit(encoder, space, learning_rate=1e-3)
    assert (without.pool, without.pool_documents, without.uniformity_before) == (None, 0, None)


# ---- warnings


def test_a_collapse_causes_a_warning_with_numbers_and_a_rate_to_try(encoder: Encoder, space: LabelSpace, pool: Pool):
    with pytest.warns(LabelSpaceWarning, match=r"moved together: uniformity rose from -\d.* try learning_rate=2e-02"):
        result = fit(encoder, space, pool, learning_rate=0.05, max_steps=20)
    assert result.uniformity_after is not None
    assert result.uniformity_before is not None
    assert result.uniformity_after > result.uniformity_before + 0.25


def test_a_low_rate_causes_no_warning(encoder: Encoder, space: LabelSpace, pool: Pool):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(encoder, space, pool, learning_rate=1e-5)


def test_an_interrupt_causes_a_warning_that_says_how_to_continue(encoder: Encoder, space: LabelSpace):
    options = {"learning_rate": 1e-3, "check_every": 1, "max_steps": 4}
    with pytest.warns(LabelSpaceWarning, match=r"interrupted at step 3; .* pass its folder as the encoder"):
        result = fit(encoder, space, callbacks=(stop_at(3, KeyboardInterrupt),), **options)
    assert (result.curve.stop_reason, result.curve.best_step) == ("interrupted", 2)


def test_an_interrupt_before_anything_was_learnt_is_raised(encoder: Encoder, space: LabelSpace):
    before = weights_of(encoder)
    with pytest.raises(KeyboardInterrupt):
        fit(encoder, space, callbacks=(stop_at(1, KeyboardInterrupt),), learning_rate=1e-3)
    assert same_bits(encoder, before)


def test_an_interrupt_during_the_search_is_raised_and_changes_nothing(
    encoder: Encoder, space: LabelSpace, pool: Pool, monkeypatch: pytest.MonkeyPatch
):
    before = weights_of(encoder)
    step = torch.optim.AdamW.step
    calls = 0

    def interrupted(self: torch.optim.AdamW, *args: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt
        return step(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(torch.optim.AdamW, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(encoder, space, pool)
    assert same_bits(encoder, before)


# ---- fewer descriptions


def test_descriptions_per_label_bounds_the_sweep(encoder: Encoder, space: LabelSpace, monkeypatch: pytest.MonkeyPatch):
    counts: list[int] = []
    from labelspace.training.description import fit as description

    original = description.build_sweep

    def spy(*args: object, **options: object) -> object:
        sweep = original(*args, **options)  # type: ignore[arg-type]
        counts.append(sweep.descriptions)
        return sweep

    monkeypatch.setattr(description, "build_sweep", spy)
    fit(encoder, space, learning_rate=1e-3, descriptions_per_label=2)
    fit(encoder, space, learning_rate=1e-3)
    assert counts == [2 + 1 + 2 + 2, 9]
