"""Reference relations on disk: the encoder's own vectors, computed once, resumed by windows, checked before use."""

import json

import numpy as np
import pytest
import torch

from labelspace.config import PrefinetuneConfig
from labelspace.encoders.identity import encoder_hash
from labelspace.errors import InputError, OutputError
from labelspace.training.prefinetune import relations as module
from labelspace.training.prefinetune.offline import Targets, find_eigenspace
from labelspace.training.prefinetune.relations import VECTORS, WINDOWS, ReferenceRelations
from training.prefinetune.toy import toy_pairs


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch):
    """Cut 36 pairs into five windows, the last one shorter."""
    monkeypatch.setattr(module, "WINDOW", 8)


@pytest.fixture
def encoded(monkeypatch):
    """Record the start of each encoded window."""
    starts = []
    real = ReferenceRelations._encode

    def counting(self, start):
        starts.append(start)
        return real(self, start)

    monkeypatch.setattr(ReferenceRelations, "_encode", counting)
    return starts


def made(encoder, pairs, folder) -> ReferenceRelations:
    relations = ReferenceRelations(encoder, pairs, folder)
    for _ in relations.blocks():
        pass
    return relations


def entry_of(folder):
    (entry,) = [path for path in folder.iterdir() if path.is_dir()]
    return entry


def test_a_relation_is_the_anchors_vector_beside_the_positives(base, pairs, tmp_path):
    relations = made(base, pairs, tmp_path)
    rows = [35, 0, 7]
    anchors = base.encode([pairs.anchors[row] for row in rows])
    positives = base.encode([pairs.positives[row] for row in rows])
    found = relations.take(rows)
    assert found.dtype is torch.float32
    np.testing.assert_allclose(found, np.concatenate([anchors, positives], axis=1), atol=1e-6)


def test_blocks_are_all_pairs_in_order(base, pairs, tmp_path):
    relations = ReferenceRelations(base, pairs, tmp_path)
    blocks = [(rows.start, rows.stop, block) for rows, block in relations.blocks()]
    assert [(start, stop) for start, stop, _ in blocks] == [(0, 8), (8, 16), (16, 24), (24, 32), (32, 36)]
    assert torch.equal(torch.cat([block for _, _, block in blocks]), relations.take(range(36)))


def test_they_are_computed_once(base, pairs, tmp_path, encoded):
    for _ in range(3):
        made(base, pairs, tmp_path)
    assert encoded == [0, 8, 16, 24, 32]


def test_a_text_repeated_in_a_window_is_encoded_once(base, pairs, tmp_path, monkeypatch):
    asked = []
    real = type(base).embed
    monkeypatch.setattr(
        type(base), "embed", lambda self, ids, **more: asked.append(len(ids)) or real(self, ids, **more)
    )
    made(base, pairs, tmp_path)
    assert asked == [10, 12, 10, 10, 6], "8 anchors and the positives of one source or two"


@pytest.mark.parametrize("stopped_after", [1, 3])
def test_windows_finished_before_a_stop_are_not_computed_again(base, pairs, tmp_path, encoded, stopped_after):
    straight = made(base, pairs, tmp_path / "straight").take(range(36))
    encoded.clear()
    stopped = ReferenceRelations(base, pairs, tmp_path / "stopped").blocks()
    for _ in range(stopped_after):
        next(stopped)
    stopped.close()
    went_on = made(base, pairs, tmp_path / "stopped")
    assert encoded == [0, 8, 16, 24, 32]
    assert torch.equal(went_on.take(range(36)), straight)


def test_a_kill_right_after_resuming_loses_no_finished_window(base, pairs, tmp_path, monkeypatch):
    stopped = ReferenceRelations(base, pairs, tmp_path).blocks()
    for _ in range(3):
        next(stopped)
    stopped.close()
    real, on_disk = ReferenceRelations._encode, []

    def watched(self, start):
        on_disk.append(len((entry_of(tmp_path) / WINDOWS).read_text().splitlines()))
        return real(self, start)

    monkeypatch.setattr(ReferenceRelations, "_encode", watched)
    made(base, pairs, tmp_path)
    assert on_disk == [3, 4], "what a kill at this moment would leave"


@pytest.mark.parametrize("damage", ["a flipped byte", "cut off", "a torn line", "no log", "nonsense"])
def test_a_damaged_window_and_all_later_ones_are_computed_again(base, pairs, tmp_path, encoded, damage):
    before = made(base, pairs, tmp_path).take(range(36))
    vectors, log = entry_of(tmp_path) / VECTORS, entry_of(tmp_path) / WINDOWS
    data, lines = vectors.read_bytes(), log.read_text().splitlines(keepends=True)
    again = [16, 24, 32]
    if damage == "a flipped byte":
        vectors.write_bytes(data[: 20 * 256] + bytes([data[20 * 256] ^ 0xFF]) + data[20 * 256 + 1 :])
    elif damage == "cut off":
        vectors.write_bytes(data[: 20 * 256])
    elif damage == "a torn line":
        log.write_text("".join(lines[:2]) + lines[2][:20])
    elif damage == "no log":
        log.unlink()
        again = [0, 8, 16, 24, 32]
    else:
        log.write_text(json.dumps([]) + "\n")
        again = [0, 8, 16, 24, 32]
    encoded.clear()
    assert torch.equal(made(base, pairs, tmp_path).take(range(36)), before)
    assert encoded == again


def test_another_encoder_truncation_or_pair_makes_another_entry(base, pairs, tmp_path, encoded):
    changed = base.copy()
    with torch.no_grad():
        next(iter(changed.backbone.model.parameters())).view(-1)[7] += 1e-3
    cut = base.copy()
    cut.backbone.tokenizer.model_max_length = 8
    prompted = base.copy()
    prompted.prompts = {"text": "why ", "label": ""}
    swapped = pairs.take([1, 0, *range(2, 36)])
    made(base, pairs, tmp_path)
    made(base.copy(), pairs, tmp_path)
    assert encoded == [0, 8, 16, 24, 32]
    for encoder, others in ((changed, pairs), (cut, pairs), (prompted, pairs), (base, swapped), (base, toy_pairs(11))):
        made(encoder, others, tmp_path)
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 6


def test_the_encoder_hash_depends_on_pooling(base, tiny_encoder_folder):
    other = type(base)(tiny_encoder_folder, dtype="float32", device="cpu", pooling="cls")
    assert encoder_hash(other) != encoder_hash(base)


def test_a_full_disk_is_one_error_and_loses_no_window(base, pairs, tmp_path, monkeypatch, encoded):
    real, calls = module._settle, []

    def full(file):
        calls.append(file)
        if len(calls) == 5:  # two calls per window: this is the vectors of the third
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(module, "_settle", full)
    with pytest.raises(OutputError, match=r"No space left.*finished ones are kept"):
        made(base, pairs, tmp_path)
    monkeypatch.setattr(module, "_settle", real)
    made(base, pairs, tmp_path)
    assert encoded == [0, 8, 16, 16, 24, 32]


def test_a_vector_that_is_not_finite_stops_at_its_window_and_names_the_source(base, pairs, tmp_path, encoded):
    broken = base.copy()
    with torch.no_grad():
        broken.backbone.model[0].model.embeddings.word_embeddings.weight[broken.tokenize(["why"])[0][1]] = torch.nan
    relations = ReferenceRelations(broken, pairs, tmp_path)
    with pytest.raises(InputError, match="of source 'questions' has a NaN"):
        find_eigenspace(relations, pairs, PrefinetuneConfig())
    assert encoded == [0, 8]


def test_equal_vectors_are_refused(base, pairs, tmp_path):
    flat = base.copy()
    with torch.no_grad():
        for weight in flat.backbone.model.parameters():
            weight.zero_()
        flat.backbone.model[0].model.encoder.layer[-1].output.LayerNorm.bias.fill_(1.0)
    with pytest.raises(InputError, match="36 pairs are one vector"):
        find_eigenspace(ReferenceRelations(flat, pairs, tmp_path), pairs, PrefinetuneConfig())


def test_targets_are_equation_7_on_the_relations_of_the_batch(base, pairs, tmp_path):
    relations = ReferenceRelations(base, pairs, tmp_path)
    space = find_eigenspace(relations, pairs, PrefinetuneConfig())
    rows = [30, 2, 14, 15]
    found = Targets(relations, pairs, space).take(rows)
    matrix, mean = space.eigenvectors.numpy(), space.mean.numpy()
    for place, row in enumerate(rows):
        relation = relations.take([row])[0].double().numpy()
        factors = space.alpha[pairs.source_ids[row]].numpy()
        by_hand = matrix @ (factors * (matrix.T @ (relation - mean))) + mean
        np.testing.assert_allclose(found[place], by_hand, atol=1e-6)
    moved = (found - relations.take(rows)).abs().max(dim=1).values
    assert space.shrunk > 0
    assert float(moved.max()) > 1e-4, "else nothing was shown"


def test_the_eigenspace_has_the_options_of_the_run(base, pairs, tmp_path):
    config = PrefinetuneConfig(rho=0.8, gamma=0.5, eta=0.4, centre="mean")
    space = find_eigenspace(ReferenceRelations(base, pairs, tmp_path), pairs, config)
    given = {name: space.settings[name] for name in ("rho", "gamma", "eta", "centre")}
    assert given == {"rho": 0.8, "gamma": 0.5, "eta": 0.4, "centre": "mean"}
    assert space.source_counts.tolist() == [12, 12, 12]
