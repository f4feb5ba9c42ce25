"""The public surface, written out: changing it is a visible line in a diff."""

import importlib
import inspect

import pytest

import labelspace
from labelspace import errors
from labelspace.config import CONFIGS

PUBLIC = [
    "DescriptionClassifier",
    "Encoder",
    "LaConClassifier",
    "Label",
    "LabelSpace",
    "LabelSpaceError",
    "UncertaintyClassifier",
    "ZeroShotClassifier",
    "__version__",
    "load",
    "prefinetune",
]

MODULES = {
    "labelspace.labels": ["Finding", "Label", "LabelSpace", "lint", "starter_file"],
    "labelspace.corpus": [
        "MAX_CHARACTERS",
        "DocumentTable",
        "PairSource",
        "Pairs",
        "Pool",
        "ResumableWriter",
        "as_documents",
        "as_targets",
        "draw_pairs",
        "mixed_batches",
        "open_labelled_pairs",
        "open_pairs",
        "open_scored_pairs",
        "open_table",
        "sample_pool",
    ],
    "labelspace.encoders": ["DEFAULT_ENCODER", "KNOWN_ENCODERS", "Encoder", "EncoderSpec", "find_spec"],
    "labelspace.losses": [
        "cosine_scores",
        "gaussian_kl",
        "infonce_columns",
        "infonce_rows",
        "instance_centred",
        "label_centred",
        "label_regularizer",
        "labelwise_contrastive",
        "labelwise_loss",
        "lacon_loss",
        "pair_infonce",
        "relation_cosine",
        "reze_loss",
        "self_supervised_contrastive",
        "supervised_contrastive",
        "symmetric_infonce",
    ],
    "labelspace.geometry": [
        "Eigenspace",
        "Flow",
        "RelationMoments",
        "Whitening",
        "alignment",
        "debias",
        "drift",
        "fit_eigenspace",
        "fit_flow",
        "fit_whitening",
        "isoscore",
        "neighbours_kept",
        "project",
        "sample_pairs",
        "uniformity",
    ],
    "labelspace.training": [
        "Callback",
        "Curve",
        "FitResult",
        "LaConFit",
        "MLflowLogger",
        "RateChoice",
        "TensorBoardLogger",
        "Trial",
        "WandbLogger",
        "train_on_descriptions",
        "train_on_labels",
    ],
    "labelspace.training.lacon": [
        "Agreement",
        "HeadShape",
        "LaConCurve",
        "LaConFit",
        "LaConHead",
        "Look",
        "Prior",
        "train_before_labels",
        "train_on_labels",
    ],
    "labelspace.training.prefinetune": [
        "Look",
        "Measures",
        "PrefinetuneResult",
        "Prefinetuned",
        "Training",
        "check_pairs",
        "gather_pairs",
        "prefinetune",
        "read_eigenspace",
    ],
    "labelspace.training.uncertainty": [
        "HeldOut",
        "Limit",
        "Outputs",
        "UncertaintyCurve",
        "UncertaintyFit",
        "entropy",
        "outputs_of_states",
        "outputs_of_texts",
        "train_gaussian_head",
    ],
    "labelspace.classify": [
        "BiEncoderClassifier",
        "DescriptionClassifier",
        "Explanation",
        "LaConClassifier",
        "LabelChange",
        "Predicted",
        "Scorer",
        "UncertaintyClassifier",
        "ZeroShotClassifier",
        "load",
        "predict_file",
    ],
    "labelspace.training.nli": [
        "Look",
        "NLIConfig",
        "NLIModel",
        "NLIRun",
        "Pairs",
        "balanced_dev",
        "dev_scores",
        "pair_loss",
        "read_pairs",
        "train_nli",
    ],
    "labelspace.heads": [
        "CrossEncoderHead",
        "FusionHead",
        "GaussianHead",
        "LEAMHead",
        "LSANHead",
        "LabelEmbeddings",
        "ProjectionHead",
        "TextCNN",
        "entailment_score",
        "sample",
    ],
    "labelspace.families": ["EntailmentScorer", "LLMScorer", "RerankerScorer"],
    "labelspace.evaluate": [
        "Baseline",
        "DifficultyBand",
        "Evaluation",
        "LabelMetrics",
        "Metrics",
        "RatePoint",
        "RejectionCurve",
        "Rejections",
        "Trajectory",
        "TrajectoryPoint",
        "abstaining_scorer",
        "confusion_figure",
        "difficulty",
        "evaluate",
        "evaluate_table",
        "label_similarity_figure",
        "map_figure",
        "provenance",
        "rate_points",
        "rates_figure",
        "rejection_curve",
        "rejection_figure",
        "softmax_entropy",
        "sphere_figure",
        "trajectory",
        "trajectory_figure",
        "write_result",
    ],
    "labelspace.evaluate.figures": [
        "RatePoint",
        "Trajectory",
        "TrajectoryPoint",
        "confusion_figure",
        "label_similarity_figure",
        "map_figure",
        "rate_points",
        "rates_figure",
        "rejection_figure",
        "sphere_figure",
        "trajectory",
        "trajectory_figure",
    ],
    "labelspace.evaluate.bench": [
        "BTZSC",
        "MTEB",
        "BenchTable",
        "ModelSpec",
        "OpenModel",
        "OwnFile",
        "ResultStore",
        "RunReport",
        "Task",
        "TaskCard",
        "bench_figures",
        "bench_tables",
        "find_tasks",
        "load_task",
        "open_model",
        "own_task",
        "run",
        "similarities",
    ],
    "labelspace.cli": ["main"],
}

FIELDS = {
    "EncodingConfig": {"dtype": "auto", "device": "auto", "token_budget": 1024, "max_tokens": None},
    "SearchConfig": {
        "rates": (1e-6, 3e-6, 5e-6, 1e-5, 3e-5, 5e-5, 1e-4, 3e-4, 5e-4),
        "strategy": "halving",
        "steps": 40,
        "documents": 1000,
        "pairs": 50_000,
    },
    "TrainingConfig": {
        "objective": "both",
        "temperature": 0.07,
        "learning_rate": "auto",
        "max_steps": 1000,
        "warmup": 0.5,
        "check_every": 10,
        "patience": 10,
        "tolerance": 1e-5,
        "dropout": False,
        "weight_decay": 0.01,
        "descriptions_per_label": None,
        "freeze_layers": 0,
        "lora_rank": None,
        "max_tokens_in_memory": 16_384,
    },
    "LaConConfig": {
        "objective": "lacon",
        "head": "vanilla",
        "projection": "auto",
        "heads": None,
        "temperature": 0.1,
        "regularizer_weight": 0.1,
        "instance_weight": 1.0,
        "label_weight": 1.0,
        "init": "descriptions",
        "description_weight": "auto",
        "description_steps": 60,
        "learning_rate": "auto",
        "head_learning_rate": 1e-4,
        "batch_size": 16,
        "epochs": 10,
        "max_steps": None,
        "warmup": 0.06,
        "weight_decay": 0.01,
        "validation": "auto",
        "patience": 3,
        "class_weight": None,
        "dropout": True,
        "max_tokens_in_memory": 16_384,
    },
    "UncertaintyConfig": {
        "extractor": "textcnn",
        "uncertain": True,
        "contrastive": "label-wise",
        "contrastive_weight": 0.9,
        "kl_weight": 1e-3,
        "contrastive_temperature": 2.0,
        "dropout": 0.5,
        "learning_rate": "auto",
        "batch_size": 64,
        "epochs": "auto",
        "warmup": 0.1,
        "weight_decay": 0.01,
        "validation": "auto",
    },
    "PrefinetuneConfig": {
        "regularizer_weight": 1.0,
        "rho": 0.99,
        "gamma": 1.0,
        "eta": 0.7,
        "centre": "median",
        "temperature": 0.05,
        "learning_rate": 1e-4,
        "batch_size": 8,
        "epochs": 1,
        "warmup": 0.0,
        "weight_decay": 0.01,
        "max_tokens": None,
        "per_source": None,
        "held_aside": 0.1,
        "dropout": True,
        "max_tokens_in_memory": 16_384,
    },
}

ERRORS = {
    "LabelSpaceError": ["Exception"],
    "ConfigError": ["LabelSpaceError", "ValueError"],
    "LabelFileError": ["LabelSpaceError", "ValueError"],
    "InputError": ["LabelSpaceError", "ValueError"],
    "ColumnError": ["InputError", "KeyError"],
    "ShapeError": ["LabelSpaceError", "ValueError"],
    "EncoderError": ["LabelSpaceError", "ValueError"],
    "EncoderNotFoundError": ["EncoderError", "FileNotFoundError"],
    "RemoteCodeError": ["EncoderError", "PermissionError"],
    "ModelFolderError": ["LabelSpaceError", "ValueError"],
    "TrainingError": ["LabelSpaceError", "RuntimeError"],
    "OutputError": ["LabelSpaceError", "OSError"],
    "MissingDependencyError": ["LabelSpaceError", "ImportError"],
    "LabelSpaceWarning": ["UserWarning"],
}

# train-nli is not in the drawing: the BTZSC benchmark trains its own cross-encoders.
COMMANDS_OF_THE_DESIGN = "init lint fit predict evaluate explain encoders prefinetune bench train-nli figures serve"
FORMAT = 2


def test_labelspace_offers_these_names():
    assert labelspace.__all__ == PUBLIC


def test_labelspace_offers_at_most_a_dozen_names():
    assert len(labelspace.__all__) <= 12


def test_every_public_name_is_there_and_dir_shows_no_other():
    for name in labelspace.__all__:
        assert getattr(labelspace, name) is not None
    assert dir(labelspace) == sorted(labelspace.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Classifier'"):
        labelspace.Classifier  # noqa: B018


@pytest.mark.parametrize("module", MODULES)
def test_each_folder_offers_these_names(module):
    assert importlib.import_module(module).__all__ == MODULES[module]


@pytest.mark.parametrize("module", MODULES)
def test_each_folder_keeps_what_it_offers(module):
    folder = importlib.import_module(module)
    gone = [name for name in getattr(folder, "__all__", []) if not hasattr(folder, name)]
    assert not gone
    assert folder.__doc__, "each folder says what it is for"


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_configs_have_these_fields_and_defaults(config):
    expected = FIELDS[config.__name__]
    assert list(vars(config())) == list(expected)
    for name, value in vars(config()).items():
        wanted = pytest.approx(expected[name]) if isinstance(value, tuple) else expected[name]
        assert value == wanted, name


def test_every_config_is_listed():
    assert [config.__name__ for config in CONFIGS] == list(FIELDS)


def test_errors_form_this_tree():
    classes = {
        name: [base.__name__ for base in thing.__bases__]
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and thing.__module__ == errors.__name__
    }
    assert classes == ERRORS


def test_saved_models_have_this_format_version():
    from labelspace import header

    assert header.FORMAT == FORMAT


def test_saved_models_are_of_these_classes():
    from labelspace.classify import saving

    assert set(saving.CLASSES) == {name for name in PUBLIC if name.endswith("Classifier")}
    for name, kind in saving.CLASSES.items():
        assert kind is getattr(labelspace, name)


def test_commands_are_words_of_the_design():
    import typer

    from labelspace.cli.app import app

    commands = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    assert set(commands) <= set(COMMANDS_OF_THE_DESIGN.split())
    assert {"init", "lint", "encoders", "fit", "predict", "evaluate", "explain"} <= set(commands)
    assert all(command.help for command in commands.values()), "each command says what it does"
