"""The public surface, listed: changing it changes a line here."""

import importlib
import inspect
from typing import Any

import pytest

import labelspace
from contracts.source import changes, public_folders
from labelspace import errors
from labelspace.config import CONFIGS

PUBLIC = [
    "ConsensusClassifier",
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
    "labelspace.labels": ["Draft", "Finding", "Label", "LabelSpace", "lint", "starter_file"],
    "labelspace.corpus": [
        "MAX_CHARACTERS",
        "Document",
        "DocumentTable",
        "Documents",
        "Kind",
        "PairSource",
        "Pairs",
        "Pool",
        "ResumableWriter",
        "as_documents",
        "as_targets",
        "as_texts_or_pairs",
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
        "infonce_in_blocks",
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
        "soft_cross_entropy",
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
        "FitResult",
        "LaConFit",
        "MLflowLogger",
        "RateChoice",
        "TensorBoardLogger",
        "Training",
        "Trial",
        "WandbLogger",
        "train_on_descriptions",
        "train_on_labels",
    ],
    "labelspace.training.description": [
        "FitResult",
        "RateChoice",
        "Trial",
        "train_on_descriptions",
    ],
    "labelspace.training.lacon": [
        "Agreement",
        "HeadShape",
        "LaConFit",
        "LaConHead",
        "Look",
        "Prior",
        "short_of_rows",
        "train_before_labels",
        "train_on_labels",
    ],
    "labelspace.training.prefinetune": [
        "Look",
        "Measures",
        "PrefinetuneResult",
        "Prefinetuned",
        "check_pairs",
        "gather_pairs",
        "prefinetune",
        "read_eigenspace",
    ],
    "labelspace.training.uncertainty": [
        "HeldOut",
        "Limit",
        "Outputs",
        "UncertaintyFit",
        "entropy",
        "outputs_of_states",
        "outputs_of_texts",
        "train_gaussian_head",
    ],
    "labelspace.classify": [
        "Answers",
        "Batches",
        "BiEncoderClassifier",
        "Classifier",
        "DescriptionClassifier",
        "Explanation",
        "Exported",
        "LaConClassifier",
        "LabelChange",
        "Predicted",
        "Scorer",
        "UncertaintyClassifier",
        "WordsClassifier",
        "ZeroShotClassifier",
        "export",
        "load",
        "predict_file",
    ],
    "labelspace.consensus": ["Consensus", "ConsensusClassifier", "ConsensusFit", "agree"],
    "labelspace.training.student": ["StudentFit", "train_student"],
    "labelspace.training.nli": [
        "Look",
        "NLIModel",
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
    "labelspace.families": ["EndpointScorer", "EntailmentScorer", "LLMScorer", "RerankerScorer"],
    "labelspace.evaluate": [
        "Advice",
        "Baseline",
        "DescriptionAdvice",
        "Difference",
        "DifficultyBand",
        "DraftChoice",
        "DraftJudge",
        "Estimate",
        "Evaluation",
        "Interval",
        "Intervals",
        "LabelMetrics",
        "Metrics",
        "PairAdvice",
        "RejectionCurve",
        "Rejections",
        "SeveralBaseline",
        "SeveralDifference",
        "SeveralEvaluation",
        "SeveralIntervals",
        "SeveralMetrics",
        "abstaining_scorer",
        "advice_figure",
        "advise",
        "calibrate",
        "confusion_figure",
        "consensus_figure",
        "difficulty",
        "estimate",
        "estimate_figure",
        "evaluate",
        "evaluate_table",
        "label_similarity_figure",
        "map_figure",
        "provenance",
        "rejection_curve",
        "rejection_figure",
        "softmax_entropy",
        "sphere_figure",
        "write_result",
    ],
    "labelspace.serve": ["running"],
    "labelspace.evaluate.figures": [
        "advice_figure",
        "confusion_figure",
        "consensus_figure",
        "estimate_figure",
        "label_similarity_figure",
        "map_figure",
        "rejection_figure",
        "sphere_figure",
    ],
    "labelspace.bench": [
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
    "labelspace.config": [
        "ANCHORS",
        "CENTRES",
        "CONFIGS",
        "CONTRASTIVES",
        "DEFAULT_ANCHOR",
        "DTYPES",
        "EXTRACTORS",
        "FALLBACK_LEARNING_RATE",
        "LABEL_STARTS",
        "LACON_HEADS",
        "LACON_OBJECTIVES",
        "LONG_TEXTS",
        "NLI_VARIANTS",
        "OBJECTIVES",
        "PAPER_LEARNING_RATES",
        "RUNTIMES",
        "SEARCHES",
        "ConsensusConfig",
        "DecisionConfig",
        "EncodingConfig",
        "LaConConfig",
        "NLIConfig",
        "PrefinetuneConfig",
        "SearchConfig",
        "ServingConfig",
        "StudentConfig",
        "TrainingConfig",
        "UncertaintyConfig",
    ],
}

# Configurations and their fields, in order.
FIELDS = {
    "EncodingConfig": "dtype device token_budget max_tokens",
    "ConsensusConfig": """
        documents view_steps slow_documents price temperature alpha long_texts neighbours rounds own words C folds
        guards documents_per_label min_agreement
    """,
    "StudentConfig": """
        documents epochs batch_size learning_rate temperature description_weight warmup weight_decay encoder_dropout
        max_tokens_in_memory
    """,
    "DecisionConfig": "anchor temperature threshold min_probability labels_per_text long_texts",
    "SearchConfig": "rates strategy steps documents pairs",
    "TrainingConfig": """
        objective temperature learning_rate max_steps warmup check_every patience tolerance encoder_dropout
        weight_decay descriptions_per_label freeze_layers lora_rank max_tokens_in_memory
    """,
    "LaConConfig": """
        objective head projection_head heads temperature regularizer_weight instance_weight label_weight init
        description_weight description_steps learning_rate head_learning_rate batch_size epochs max_steps
        warmup weight_decay validation patience class_weight encoder_dropout max_tokens_in_memory
    """,
    "UncertaintyConfig": """
        extractor uncertain contrastive contrastive_weight kl_weight contrastive_temperature dropout
        learning_rate batch_size epochs warmup weight_decay validation cache_bytes
    """,
    "PrefinetuneConfig": """
        regularizer_weight rho gamma eta centre temperature learning_rate batch_size epochs warmup
        weight_decay max_tokens per_source validation encoder_dropout max_tokens_in_memory
    """,
    "NLIConfig": """
        variant max_tokens leave_out max_pairs epochs batch_size max_steps max_seconds learning_rate
        head_learning_rate warmup weight_decay dropout evaluate_every patience dev_per_class window seed dtype device
    """,
    "ServingConfig": "max_waiting max_characters max_megabytes max_options together wait",
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

# Commands with their arguments and options, in the order of the help.
COMMANDS = {
    "init": "file --names --from --name --template --descriptions-per-label --overwrite",
    "lint": """
        file --encoder --pool --figure --text-column --delimiter --encoding --template --strict --all --json
        --dtype --trust-remote-code --offline
    """,
    "draft": """
        labels --model --out --pool --each --pairs --keep --price --text-column --delimiter --encoding --seed
        --overwrite --encoder --device --trust-remote-code --offline --json --quiet -q
    """,
    "encoders": "--json",
    "fit": """
        labels --out --method --pool --labelled --views --student --limit --prior --none --text-column --label-column
        --pair-column --template --encoder --device --learning-rate --epochs --max-steps --set --settings --threshold
        --min-probability --long-texts --seed --checkpoint --resume --overwrite --delimiter --encoding --pooling
        --dtype --max-tokens --revision --trust-remote-code --offline --tensorboard --json --quiet -q
    """,
    "predict": """
        model source target --text-column --pair-column --delimiter --encoding --prefix --resume
        --overwrite --threshold --min-probability --long-texts --workers --all-scores --top --coverage --risk
        --most-uncertain --argilla --device --trust-remote-code --json --quiet -q
    """,
    "evaluate": """
        model file --text-column --pair-column --label-column --delimiter --encoding --confusion
        --rejection-curve --count-none --beside --no-baselines --threshold --min-probability --long-texts --anchor
        --encoder --dtype --device --trust-remote-code --offline --json --quiet -q
    """,
    "estimate": """
        model file --text-column --label-column --delimiter --encoding --figure --seed --device --trust-remote-code
        --json --quiet -q
    """,
    "explain": """
        model texts --top --nearest --threshold --min-probability --long-texts --device --trust-remote-code
        --json
    """,
    "figures": """
        model file --out --only --text-column --label-column --delimiter --encoding --projection
        --max-documents --no-before --seed --device --trust-remote-code --quiet -q
    """,
    "export": """
        model out --to --documents --text-column --delimiter --encoding --trust-remote-code --json --quiet -q
    """,
    "serve": """
        models --host --port --api-key-file --max-waiting --max-characters --log-texts --device --trust-remote-code
        --quiet -q
    """,
    "prefinetune": """
        --out --pairs --labelled --scored --min-score --anchor-column --positive-column --source-column
        --score-column --labels --encoder --per-source --seed --resume --overwrite --text-column
        --label-column --dtype --device --max-tokens --revision --trust-remote-code --offline
        --learning-rate --epochs --set --settings --json --quiet -q
    """,
    "train-nli": """
        --data --out --encoder --variant --resume --seed --dtype --device --trust-remote-code --offline
        --learning-rate --epochs --batch-size --max-pairs --max-steps --max-seconds --set --settings
        --json --quiet -q
    """,
    "studio": """
        labels --pool --text-column --delimiter --encoding --limit --encoder --dtype --device --trust-remote-code
        --offline --port --no-open --quiet -q
    """,
    "bench run": """
        models --data --tasks --limit --seeds --store --protocol --unverbalized --bootstrap --file --labels
        --text-column --label-column --nli --dtype --device --trust-remote-code --offline --json --quiet -q
    """,
    "bench tasks": "--data --offline --json",
    "bench table": "--store --metric --by --beside --markdown --json",
    "bench compare": "model --store --metric --protocol --limit --dtype --json",
    "bench export": "model --out --store --name --url --partial --protocol --limit --dtype",
    "bench figures": "--out --store --data --metric --quiet -q",
}

FORMAT = 3


def words(lists: dict[str, str]) -> dict[str, list[str]]:
    return {name: text.split() for name, text in lists.items()}


def check(offered: dict[str, list[str]], listed: dict[str, list[str]], name: str) -> None:
    found = changes(offered, listed)
    cure = f"If you meant that, change {name} in tests/contracts/test_surface.py (CONTRIBUTING.md, rules 13 and 19)."
    assert not found, "\n".join([*found, cure])


def spelt(parameter: Any) -> list[str]:
    """Return an option as written on the command line, or the name of an argument."""
    return [parameter.name] if parameter.param_type_name == "argument" else [*parameter.opts, *parameter.secondary_opts]


def test_labelspace_offers_these_names():
    check({"labelspace": labelspace.__all__}, {"labelspace": PUBLIC}, "PUBLIC")


def test_labelspace_offers_at_most_a_dozen_names():
    assert len(labelspace.__all__) <= 12


def test_every_public_name_exists_and_dir_lists_no_other():
    for name in labelspace.__all__:
        assert getattr(labelspace, name) is not None
    offered = [folder.__name__.split(".")[1:] for folder in public_folders()]
    modules = {"errors", *(names[0] for names in offered if len(names) == 1)} - {"cli"}
    assert dir(labelspace) == sorted([*labelspace.__all__, *modules])


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Classifier'"):
        labelspace.Classifier  # noqa: B018


def test_each_folder_offers_these_names():
    offered = {folder.__name__: folder.__all__ for folder in public_folders() if folder is not labelspace}
    check(offered, MODULES, "MODULES")


def test_each_folder_exports_its_names_and_has_a_docstring():
    gone = [
        f"{folder.__name__}.{name}"
        for folder in public_folders()
        for name in folder.__all__
        if not hasattr(folder, name)
    ]
    assert not gone, "\n".join(gone)
    bare = [folder.__name__ for folder in public_folders() if not folder.__doc__]
    assert not bare, "\n".join(bare)


def test_configurations_have_these_fields():
    check({config.__name__: list(vars(config())) for config in CONFIGS}, words(FIELDS), "FIELDS")


def test_errors_form_this_tree():
    classes = {
        name: [base.__name__ for base in thing.__bases__]
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and thing.__module__ == errors.__name__
    }
    check(classes, ERRORS, "ERRORS")


def test_saved_models_have_this_format_version():
    from labelspace import header

    assert header.FORMAT == FORMAT


def test_saved_models_are_of_these_classes():
    from labelspace.classify.saved import opening

    # What a consensus learnt is saved as the model that answers.
    public = {name for name in PUBLIC if name.endswith("Classifier")} - {"ConsensusClassifier"}
    assert set(opening.CLASSES) == public | {"JointClassifier", "WordsClassifier"}
    for name in public:
        module = importlib.import_module(f"labelspace.classify.{opening.CLASSES[name]}")
        assert getattr(module, name) is getattr(labelspace, name)


def test_the_command_line_has_these_commands_arguments_and_options():
    import typer

    from labelspace.cli.app import app

    commands = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    single = {
        f"{name} {part}".strip(): command
        for name, group in commands.items()
        for part, command in getattr(group, "commands", {"": group}).items()
    }
    taken = {name: [word for each in command.params for word in spelt(each)] for name, command in single.items()}
    check(taken, words(COMMANDS), "COMMANDS")
    bare = [name for name, command in {**commands, **single}.items() if not command.help]
    assert not bare, f"without a help text: {', '.join(bare)}"
