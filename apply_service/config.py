"""Settings: one frozen struct, read once from flags, environment and one TOML file, in that order.

ConfigError ← UnknownSettingError, SettingValueError, ConfigFileError
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from apply_service.apply.judge.word import DEFAULT_ACCURACY
from apply_service.http.compat.settings import DEFAULT_ALIASES
from batching.config import DEFAULT_CHUNK_TOKENS

ENVIRONMENT_PREFIX = "APPLY_SERVICE_"
# Read elsewhere: the server that the command line talks to, and the folder of prepared models.
OTHER_VARIABLES = frozenset({"APPLY_SERVICE_URL", "APPLY_SERVICE_CACHE"})

# Keys that values in Redis are signed with; read apart, since command lines can be seen by others.
CACHE_KEY_VARIABLE = "APPLY_CACHE_KEY"
# The servers of judge and writer are sent them; read apart for the same reason.
JUDGE_KEY_VARIABLE = "APPLY_JUDGE_API_KEY"
WRITER_KEY_VARIABLE = "APPLY_WRITER_API_KEY"

_BYTES: dict[str, Any] = {"unit": "bytes"}
_URL: dict[str, Any] = {"unit": "url"}
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]*)\s*")


class ConfigError(Exception):
    """Base of everything that can be wrong with the settings."""


class UnknownSettingError(ConfigError):
    """No setting has this name."""


class SettingValueError(ConfigError):
    """A value has the wrong type or is outside its range."""


class ConfigFileError(ConfigError):
    """The configuration file cannot be read."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set, with its default."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    ] = 8722
    root_path: Annotated[
        str, Meta(description="Path under which a proxy serves this server, such as /apply.")
    ] = ""
    allowed_hosts: Annotated[
        str | None,
        Meta(
            description="Host names that requests may use, separated by commas; *.example.com"
            " matches every name below it, * matches all. Unset: this machine's names"
            " if only it can connect, else all."
        ),
    ] = None
    allow_origins: Annotated[
        str,
        Meta(
            description="Origins whose web pages may call the server, separated by commas, such"
            " as https://editor.example.com; * allows all."
        ),
    ] = ""
    keys_file: Annotated[
        str | None,
        Meta(description="File of API keys; unset: keys.json in the user's configuration folder."),
    ] = None
    create_key: Annotated[
        bool,
        Meta(
            description="Whether a start without API keys makes one in keys_file, which must be"
            " set, and shows it once."
        ),
    ] = False
    allow_anonymous: Annotated[
        bool,
        Meta(description="Whether edits from any address need no API key."),
    ] = False
    metrics_need_key: Annotated[
        bool,
        Meta(description="Whether /metrics needs a key with the scope admin once keys exist."),
    ] = True
    requests_per_minute: Annotated[
        int, Meta(ge=0, description="Requests per minute for each API key; 0 means no limit.")
    ] = 1200
    tokens_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            description="Prompt and answer tokens per minute for each API key; 0 means no limit.",
        ),
    ] = 2_000_000
    max_concurrent: Annotated[
        int, Meta(ge=0, description="Requests at the same time for each API key; 0 means no limit.")
    ] = 64
    max_connections: Annotated[
        int, Meta(ge=1, description="Open connections; further ones get 503.")
    ] = 1000
    receive_timeout_s: Annotated[
        float,
        Meta(gt=0, description="Seconds that the head of a request may take, and again its body."),
    ] = 30.0
    send_timeout_s: Annotated[
        float,
        Meta(gt=0, description="Seconds that a client may leave its answer unread."),
    ] = 30.0
    keep_alive_s: Annotated[
        float,
        Meta(gt=0, description="Seconds of silence after which an event stream sends a comment."),
    ] = 10.0
    workers: Annotated[
        int, Meta(description="Server processes; only 1 is possible, see docs/security.md.")
    ] = 1
    in_process: Annotated[
        bool,
        Meta(
            description="Compute in the server's own process. Else the engine has one of its own,"
            " which is started again if it is lost."
        ),
    ] = False
    engine_socket: Annotated[
        str | None,
        Meta(
            description="Unix socket of an engine that `apply-service engine` serves to several"
            " servers; unset: an engine of its own."
        ),
    ] = None
    model: Annotated[
        str, Meta(min_length=1, description="Name of a prepared model, or a path to one.")
    ] = "embedded"
    revision: Annotated[str | None, Meta(description="Revision of a model given by name.")] = None
    profile: Annotated[
        str | None,
        Meta(description="Prompt profile: embedded, fastapply or chat; unset: the model's own."),
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        Meta(description="Where the model runs; auto takes a GPU if there is one."),
    ] = "auto"
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16", "int8"],
        Meta(
            description="Number format of the weights; auto takes bfloat16, or float32 on a CPU"
            " without bfloat16 instructions; int8 (CPU only) takes the least memory"
            " and is less exact."
        ),
    ] = "auto"
    kv_memory: Annotated[
        Annotated[int, Meta(ge=1 << 20)] | None,
        Meta(
            extra=_BYTES,
            description="Memory of the KV cache, such as 512MiB; unset: 384MiB on a CPU, 0.9 of"
            " what is free on a GPU.",
        ),
    ] = None
    cache_memory: Annotated[
        int,
        Meta(
            ge=0,
            extra=_BYTES,
            description="Host memory for computed prompts; 0 keeps them in the KV cache only.",
        ),
    ] = 64 << 20
    redis_url: Annotated[
        str | None,
        Meta(
            extra=_URL,
            description="Redis in which replicas share computed prompts: redis://, rediss:// or"
            " unix://.",
        ),
    ] = None
    cache_chunk_tokens: Annotated[
        int, Meta(ge=16, le=4096, description="Prompt tokens stored as one value.")
    ] = DEFAULT_CHUNK_TOKENS
    cache_payload: Annotated[
        Literal["exact", "float16", "int8"],
        Meta(description="Number format of stored prompts; float16 and int8 can change answers."),
    ] = "exact"
    cache_timeout_s: Annotated[
        float, Meta(gt=0, le=60, description="Seconds that a request waits for Redis at most.")
    ] = 1.0
    cache_ttl_s: Annotated[
        int, Meta(ge=1, description="Seconds until Redis deletes a prompt, used or not.")
    ] = 86_400
    cache_key: Annotated[
        str | None,
        Meta(
            description="File of keys that sign the prompts in Redis, one a line: the first signs,"
            " prompts of all are used. Or APPLY_CACHE_KEY has the keys, with spaces between."
        ),
    ] = None
    cache_sharing: Annotated[
        Literal["key", "all"],
        Meta(description="Who reuses a stored prompt: callers with the same API key, or all."),
    ] = "key"
    threads: Annotated[
        int | None, Meta(description="CPU threads of the model; unset: one per core.")
    ] = None
    tensor_parallel: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Processes that share one model, on GPUs one for each; must divide its"
            " heads and KV heads. `threads` and `kv_memory` are those of each.",
        ),
    ] = 1
    max_running: Annotated[
        int, Meta(ge=1, le=1024, description="Requests computed at the same time.")
    ] = 32
    max_waiting: Annotated[
        int, Meta(ge=0, description="Requests that may wait; further ones get 429.")
    ] = 256
    max_tokens_per_step: Annotated[
        int, Meta(ge=16, description="Tokens of all requests in one forward pass.")
    ] = 512
    max_draft_tokens: Annotated[
        int, Meta(ge=0, le=256, description="Longest draft (k) of a request; 0 turns drafts off.")
    ] = 64
    draft_budget: Annotated[
        Literal["auto", "fixed"],
        Meta(
            description="Draft length: auto takes what pays by the measured cost of a step, fixed"
            " always takes max_draft_tokens."
        ),
    ] = "auto"
    drafters: Annotated[
        str | None,
        Meta(
            description="What drafts where nothing can be copied, separated by commas: kinds as"
            " docs/drafters.md has them, with a folder where they have weights, or a number of"
            " layers: token-recycling, medusa:/models/heads, layer-skip:8."
        ),
    ] = None
    lossy_acceptance: Annotated[
        Literal["refused", "allowed"],
        Meta(
            description="Whether requests may have drafts pass that the model would not have"
            " written (`sampling.acceptance`): faster, and another text."
        ),
    ] = "refused"
    row_grouping: Annotated[
        Literal["auto", "tiles", "single"],
        Meta(
            description="How a CPU computes rows: auto takes the fastest way that gives a row the"
            " same bits in any batch; tiles and single force a slower, safer way."
        ),
    ] = "auto"
    use_model: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Whether to ask the model if a request does not say; auto skips it where"
            " the likeliest merge is certain, and the embedded model, which chooses among merges,"
            " everywhere."
        ),
    ] = "auto"
    on_doubt: Annotated[
        Literal["ask", "best", "refuse"],
        Meta(
            description="What becomes of a result in doubt if a request does not say: ask gives it"
            " with choices, best applies the likeliest merge, refuse rejects it."
        ),
    ] = "ask"
    judge_url: Annotated[
        str | None,
        Meta(
            extra=_URL,
            description="OpenAI-compatible server that names the choice which an edit in doubt"
            " means, such as http://127.0.0.1:8080/v1; it is sent parts of the file.",
        ),
    ] = None
    judge_model: Annotated[
        str | None,
        Meta(description="Model that the judge's server is to ask; unset: its first."),
    ] = None
    judge_accuracy: Annotated[
        float,
        Meta(
            ge=0.5,
            le=0.999,
            description="Probability that the judge's letter is right, which weighs its word; 0.5"
            " means nothing. `apply-service bench judge` measures it.",
        ),
    ] = DEFAULT_ACCURACY
    judge_timeout_s: Annotated[
        float, Meta(gt=0, le=60, description="Seconds that an edit in doubt waits for the judge.")
    ] = 5.0
    judge_per_minute: Annotated[
        int, Meta(ge=1, description="Edits that the judge is asked about in any minute.")
    ] = 60
    writer_url: Annotated[
        str | None,
        Meta(
            extra=_URL,
            description="OpenAI-compatible server that writes edits where the model would be asked,"
            " such as http://127.0.0.1:8080/v1; it is sent parts of the file.",
        ),
    ] = None
    writer_model: Annotated[
        str | None,
        Meta(description="Model that the writer's server is to ask; unset: its first."),
    ] = None
    writer_accuracy: Annotated[
        float,
        Meta(
            ge=0.5,
            le=0.999,
            description="Probability that a merge which the writer writes is right, which weighs"
            " its word; 0.5 means nothing. `apply-service bench writer` measures it.",
        ),
    ] = DEFAULT_ACCURACY
    writer_timeout_s: Annotated[
        float, Meta(gt=0, le=600, description="Seconds that an edit waits for the writer.")
    ] = 30.0
    writer_per_minute: Annotated[
        int, Meta(ge=1, description="Edits that the writer is asked for in any minute.")
    ] = 600
    model_aliases: Annotated[
        str,
        Meta(
            description="Model names that mean the served model, separated by commas, as clients"
            " of other services send them."
        ),
    ] = ",".join(DEFAULT_ALIASES)
    compat_review: Annotated[
        Literal["refuse", "accept"],
        Meta(
            description="What the APIs of other services do with a result that needs review: refuse"
            " answers 422, accept returns it with its findings."
        ),
    ] = "refuse"
    max_file_bytes: Annotated[
        int, Meta(ge=1, extra=_BYTES, description="Largest original or update of a request.")
    ] = 1 << 20
    max_body_bytes: Annotated[
        int, Meta(ge=1024, extra=_BYTES, description="Largest body of an HTTP request.")
    ] = 4_000_000
    text_workers: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            description="Most processes that plan edits and judge results; 0 uses threads, which"
            " no deadline can stop.",
        ),
    ] = 8
    deadline_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds until a request fails, waiting included, if it names no deadline.",
        ),
    ] = 25.0
    max_deadline_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Longest `deadline_s` of a request; a longer one is cut, and the answer"
            " says so.",
        ),
    ] = 100.0
    batch_deadline_s: Annotated[
        float,
        Meta(gt=0, description="Seconds until an edit in batch priority fails."),
    ] = 3600.0
    max_batch_in_flight: Annotated[
        int,
        Meta(ge=1, le=256, description="Lines of one batch in progress at the same time."),
    ] = 16
    max_batch_lines: Annotated[
        int, Meta(ge=1, description="Lines of one batch, blank ones included.")
    ] = 50_000
    max_batch_s: Annotated[
        float, Meta(gt=0, description="Seconds after which a batch ends, finished or not.")
    ] = 14_400.0
    drain_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds that a stopping server has to end; running requests get all but"
            " the last two.",
        ),
    ] = 20.0
    stall_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds without a step, with work queued, after which /health/live fails;"
            " an engine process without a sign of life for so long is killed and started again.",
        ),
    ] = 60.0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="Least severe level that the log on stderr shows."),
    ] = "info"
    log_format: Annotated[
        Literal["auto", "console", "json"],
        Meta(description="Format of the log; auto is console on a terminal, else json."),
    ] = "auto"
    log_text: Annotated[
        bool,
        Meta(
            description="Whether the log may contain the text of edits; only for finding faults"
            " on your own machine."
        ),
    ] = False
    otlp_endpoint: Annotated[
        str | None,
        Meta(
            extra=_URL,
            description="OpenTelemetry collector for traces over HTTP, such as"
            " http://127.0.0.1:4318; unset: OTEL_EXPORTER_OTLP_ENDPOINT, if any.",
        ),
    ] = None

    @property
    def auto_use_model(self) -> Literal["auto", "never"]:
        """What `use_model` "auto" means: a writer is asked where the served model might not be."""
        return self.auto_use_served_model if self.writer_url is None else "auto"

    @property
    def auto_use_served_model(self) -> Literal["auto", "never"]:
        """The same without a writer: the embedded model's choice among merges moves no status.

        Its word counts a twelfth of the fitted scores' (docs/training.md, calibration).
        """
        is_embedded = self.profile == "embedded" or (
            self.profile is None and self.model == "embedded"
        )
        return "never" if is_embedded else "auto"


@dataclass(frozen=True, slots=True)
class SettingField:
    """One setting as the command line and the documentation show it."""

    name: str
    type: Any
    description: str
    default: Any
    is_size: bool
    is_url: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that a setting may have, if these are words; empty for all others."""
        values, *_ = get_args(self.type)
        return get_args(values) if get_origin(values) is Literal else ()

    def parse(self, value: Any, *, origin: str, is_text: bool) -> Any:
        """`value` in the setting's type. Raises SettingValueError with value, limit and origin.

        Flags and variables are text and are converted; TOML has types of its own.
        """
        try:
            if self.is_size and isinstance(value, str):
                value = parse_size(value)
            return msgspec.convert(value, self.type, strict=not is_text)
        except (msgspec.ValidationError, ValueError) as error:
            wanted = f"take {', '.join(self.choices)}; " if self.choices else ""
            raise SettingValueError(
                f"{self.name} is {value!r} ({origin}): {error}; {wanted}{self.description}"
            ) from error


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings and, by name, where each value came from."""

    settings: Settings
    origins: Mapping[str, str]


@cache
def setting_fields() -> tuple[SettingField, ...]:
    """All settings, in the order in which they are declared."""
    hints = get_type_hints(Settings, include_extras=True)
    fields = []
    for field in msgspec.structs.fields(Settings):
        meta = next(item for item in hints[field.name].__metadata__ if isinstance(item, Meta))
        unit = (meta.extra or {}).get("unit")
        fields.append(
            SettingField(
                field.name,
                hints[field.name],
                meta.description or "",
                field.default,
                is_size=unit == "bytes",
                is_url=unit == "url",
            )
        )
    return tuple(fields)


def load_settings(
    *,
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    config_path: Path | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Read the settings once. Raises ConfigError; an unknown name comes with the nearest one.

    `arguments` are those of a program that starts the service; they go before all others.
    """
    fields = {field.name: field for field in setting_fields()}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(fields, "default")
    file_values = _read_file(config_path) if config_path is not None else {}
    _check_known(file_values, fields, f"in {config_path}")
    _check_known(arguments or {}, fields, "among the arguments")
    variables = _own_variables(environment)
    _check_known(variables, fields, "in the environment", prefix=ENVIRONMENT_PREFIX)
    for name, field in fields.items():
        flag = flags.get(name)
        if arguments is not None and name in arguments:
            value, origin = arguments[name], "argument"
        elif flag is not None:
            value, origin = flag, f"flag {field.flag}"
        elif name in variables:
            value, origin = variables[name], f"environment {field.variable}"
        elif name in file_values:
            value, origin = file_values[name], f"file {config_path}"
        else:
            continue
        is_text = origin.startswith(("flag", "environment"))
        values[name] = field.parse(value, origin=origin, is_text=is_text)
        origins[name] = origin
    return LoadedSettings(Settings(**values), origins)


def parse_size(text: str) -> int:
    """Bytes of "512MiB", "4 MB" or "4096". Raises ValueError."""
    match = _SIZE.fullmatch(text)
    factor = _UNITS.get(match["unit"].upper()) if match else None
    if match is None or factor is None:
        raise ValueError("a size is a number of bytes or has a unit: KB, MB, GB, KiB, MiB, GiB")
    return int(float(match["number"]) * factor)


def format_size(num_bytes: int) -> str:
    """The shortest exact form of a size: "384MiB", "4MB" or plain bytes."""
    for unit, label in (("GIB", "GiB"), ("MIB", "MiB"), ("KIB", "KiB"), ("MB", "MB"), ("KB", "KB")):
        if num_bytes and num_bytes % _UNITS[unit] == 0:
            return f"{num_bytes // _UNITS[unit]}{label}"
    return str(num_bytes)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigFileError(
            f"cannot read the configuration file {path}: {error.strerror or error}; name a TOML"
            " file that you may read, or leave --config out"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigFileError(
            f"{path} is not a TOML file: {error}; write lines such as `port = 8722`"
        ) from error


def _own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in OTHER_VARIABLES
    }


def _check_known(
    names: Iterable[str], fields: Mapping[str, SettingField], place: str, *, prefix: str = ""
) -> None:
    for name in names:
        if name in fields:
            continue
        nearest = difflib.get_close_matches(name, fields, n=1, cutoff=0.0)
        shown = prefix + name.upper() if prefix else name
        suggestion = prefix + nearest[0].upper() if prefix else nearest[0]
        raise UnknownSettingError(
            f"unknown setting {shown} {place}; the nearest one is {suggestion}"
            " (`apply-service config` lists them all)"
        )
