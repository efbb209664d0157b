"""What small edits add: statements, fields, parameters, imports and so on for each language.

A template has `{p}` for a parameter, `{msg}` for a message and a tab for each level of indentation.
Types are sorted into kinds: `str`, `num`, `list`, `fn`, `ref` (may be null) and `value` (may not).
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function; `type` is empty where it is not written down."""

    name: str
    type: str
    default: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """What new code may know of the function it is put into."""

    language: str
    name: str
    parameters: tuple[Parameter, ...]
    result: str
    has_value: bool
    text: str
    file_text: str


C_LIKE = ("javascript", "typescript", "tsx", "java", "kotlin", "c", "cpp", "csharp", "php", "swift")
SCRIPTS = ("javascript", "typescript", "tsx")

_NUMBER_NAME = re.compile(
    r"(?:^|_)(?:count|num|n|size|length|len|index|idx|limit|offset|width|height|timeout|depth|level"
    r"|port|amount|seconds|ms|x|y|max_?\w*|min_?\w*)$",
    re.I,
)
_TEXT_NAME = re.compile(
    r"(?:name|path|url|text|key|message|msg|title|label|prefix|suffix|pattern|string|str|line|query"
    r"|host|id|code|content)$",
    re.I,
)
_CALL_NAME = re.compile(r"(?:^cb|callback|^fn|^func|handler|listener|^done|^next|predicate)$", re.I)
_LIST_NAME = re.compile(r"(?:items|args|values|list|[a-z]{3,}(?<!s)(?<!ion)(?<!clas)s)$", re.I)
_TYPES: tuple[tuple[str, str], ...] = (
    ("fn", r"Callable|=>|^func\b|\(.*\)\s*->|Function|^Fn|callback"),
    ("skip", r"^bool|^Boolean|void|^impl |^self|\.\.\.|&&|^out |^ref |^params "),
    ("list", r"^(?:typing\.)?(?:list|List|Sequence|Iterable|Array|Vec|Collection|MutableList|array)\b"
     r"|\[\]|^&\[|^\[\w+\]$|^(?:const )?std::vector|^&Vec|^\[\]"),
    ("str", r"^(?:str|string|String|&str|&String|CharSequence|NSString)$|std::string(?:_view)?\b"),
    ("num", r"^(?:int|Int|Integer|long|Long|float|Float|double|Double|number|size_t|usize|u?int\d+"
     r"(?:_t)?|[iuf](?:8|16|32|64)|short|unsigned|unsigned int|uint|CGFloat|GLuint|TimeInterval)$"),
)  # fmt: skip


def kind_of(parameter: Parameter, language: str) -> str:
    """The kind of a parameter's type, or a guess from its name; `skip` if nothing fits."""
    kind = parameter.type.strip()
    if kind:
        for name, pattern in _TYPES:
            if re.search(pattern, kind.removeprefix("const ").rstrip("?")):
                return "optional" if kind.endswith("?") and language in ("kotlin", "swift") else name
        return _kind_of_reference(kind, language)
    if language in ("go", "rust", "c", "cpp", "java", "kotlin", "swift", "csharp"):
        return "skip"
    for name, pattern_of_name in (
        ("fn", _CALL_NAME), ("num", _NUMBER_NAME), ("str", _TEXT_NAME), ("list", _LIST_NAME),
    ):  # fmt: skip
        if pattern_of_name.search(parameter.name):
            return name
    return "ref"


def _kind_of_reference(kind: str, language: str) -> str:
    if language == "go":
        nil = kind.startswith(("*", "map[", "chan ", "interface{}")) or kind in ("error", "any")
        return "ref" if nil else "skip"
    if language in ("c", "cpp"):
        is_pointer = kind.endswith("*")
        return "ref" if is_pointer else "skip"
    if language == "rust":
        return "optional" if kind.startswith("Option<") else "skip"
    if language in ("kotlin", "swift"):
        return "optional" if kind.endswith("?") else "skip"
    if language in ("java", "csharp") and (kind in ("char", "byte", "CancellationToken") or kind[0].islower()):
        return "skip"
    if language == "csharp" and re.match(r"Vector\d|Quaternion|Color|Rect|I?ntPtr", kind):
        return "skip"
    return "ref"


_SCRIPT_CONDITIONS = {
    "ref": (("!{p}", "{p} is required"), ("{p} == null", "{p} must not be null"),
            ("{p} === undefined", "missing {p}"), ("typeof {p} !== 'object'", "{p} must be an object")),
    "str": (("!{p}", "{p} is required"), ("typeof {p} !== 'string'", "expected {p} to be a string"),
            ("{p} === ''", "{p} must not be empty"), ("{p}.length === 0", "{p} is empty")),
    "num": (("{p} < 0", "{p} must not be negative"), ("Number.isNaN({p})", "{p} is not a number"),
            ("!Number.isFinite({p})", "{p} must be finite"), ("typeof {p} !== 'number'", "{p} must be a number")),
    "list": (("!{p} || {p}.length === 0", "{p} must not be empty"), ("!Array.isArray({p})", "{p} must be an array"),
             ("!{p}", "{p} is required"), ("{p} == null", "no {p} given")),
    "fn": (("typeof {p} !== 'function'", "{p} must be a function"), ("!{p}", "{p} is required")),
}  # fmt: skip
# Conditions under which a parameter is wrong, with what to say then.
CONDITIONS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "python": {
        "ref": (("{p} is None", "{p} is required"), ("{p} is None", "{p} must not be None"),
                ("not {p}", "missing {p}"), ("{p} is None", "no {p} given")),
        "str": (("not {p}", "{p} must not be empty"), ("not isinstance({p}, str)", "{p} must be a string"),
                ("{p} is None", "{p} is required"), ("not {p}.strip()", "{p} must not be blank")),
        "num": (("{p} < 0", "{p} must be non-negative"), ("{p} is None", "{p} is required"),
                ("{p} <= 0", "{p} must be positive"), ("{p} is None or {p} < 0", "invalid {p}")),
        "list": (("not {p}", "{p} must not be empty"), ("len({p}) == 0", "no {p} given"),
                 ("{p} is None", "{p} is required"), ("not isinstance({p}, (list, tuple))", "{p} must be a list")),
        "fn": (("not callable({p})", "{p} must be callable"), ("{p} is None", "{p} is required")),
    },
    "javascript": _SCRIPT_CONDITIONS, "typescript": _SCRIPT_CONDITIONS, "tsx": _SCRIPT_CONDITIONS,
    "java": {
        "ref": (("{p} == null", "{p} must not be null"), ("{p} == null", "{p} is required"), ("null == {p}", "missing {p}")),
        "str": (("{p} == null || {p}.isEmpty()", "{p} must not be empty"), ("{p} == null", "{p} is null"),
                ("{p}.trim().isEmpty()", "{p} is blank")),
        "num": (("{p} < 0", "{p} must not be negative"), ("{p} <= 0", "{p} must be positive"), ("{p} < 1", "invalid {p}")),
        "list": (("{p} == null", "{p} is required"), ("{p} == null", "no {p} given")),
        "fn": (("{p} == null", "{p} is required"),),
    },
    "kotlin": {
        "optional": (("{p} == null", "{p} is required"), ("{p} == null", "{p} must not be null"), ("null == {p}", "missing {p}")),
        "str": (("{p}.isEmpty()", "{p} must not be empty"), ("{p}.isBlank()", "{p} is blank"), ("{p} == \"\"", "missing {p}")),
        "num": (("{p} < 0", "{p} must not be negative"), ("{p} <= 0", "{p} must be positive"), ("{p} < 1", "invalid {p}")),
        "list": (("{p}.isEmpty()", "{p} must not be empty"), ("{p}.isEmpty()", "no {p} given")),
    },
    "go": {
        "ref": (("{p} == nil", "{p} is nil"), ("{p} == nil", "{p} must not be nil"), ("{p} == nil", "missing {p}")),
        "str": (('{p} == ""', "{p} is empty"), ("len({p}) == 0", "{p} must not be empty"), ('{p} == ""', "missing {p}")),
        "num": (("{p} < 0", "{p} must not be negative"), ("{p} <= 0", "{p} must be positive"), ("{p} == 0", "{p} is zero")),
        "list": (("len({p}) == 0", "no {p} given"), ("{p} == nil", "{p} is nil"), ("len({p}) == 0", "{p} is empty")),
        "fn": (("{p} == nil", "{p} is nil"),),
    },
    "rust": {
        "str": (("{p}.is_empty()", "{p} must not be empty"), ("{p}.trim().is_empty()", "{p} is blank"),
                ("{p}.len() > 4096", "{p} is too long")),
        "num": (("{p} == 0", "{p} must not be zero"), ("{p} > 1024", "{p} is too large"), ("{p} < 1", "{p} must be positive")),
        "list": (("{p}.is_empty()", "no {p} given"), ("{p}.len() > 1024", "too many {p}")),
        "optional": (("{p}.is_none()", "{p} is required"), ("{p}.is_none()", "missing {p}")),
    },
    "c": {
        "ref": (("{p} == NULL", "{p} is NULL"), ("!{p}", "missing {p}"), ("NULL == {p}", "{p} must not be NULL")),
        "num": (("{p} == 0", "{p} is zero"), ("{p} < 1", "invalid {p}"), ("{p} <= 0", "{p} must be positive")),
    },
    "cpp": {
        "ref": (("{p} == nullptr", "{p} is null"), ("!{p}", "missing {p}"), ("{p} == nullptr", "{p} must not be null")),
        "num": (("{p} == 0", "{p} is zero"), ("{p} <= 0", "{p} must be positive"), ("{p} < 1", "invalid {p}")),
        "str": (("{p}.empty()", "{p} must not be empty"), ("{p}.size() == 0", "{p} is empty")),
        "list": (("{p}.empty()", "no {p} given"), ("{p}.size() == 0", "{p} is empty")),
    },
    "csharp": {
        "ref": (("{p} == null", "{p} must not be null"), ("{p} is null", "{p} is required"), ("null == {p}", "missing {p}")),
        "str": (("string.IsNullOrEmpty({p})", "{p} must not be empty"), ("string.IsNullOrWhiteSpace({p})", "{p} is blank"),
                ("{p} == null", "{p} is required")),
        "num": (("{p} < 0", "{p} must not be negative"), ("{p} <= 0", "{p} must be positive"), ("{p} < 1", "invalid {p}")),
        "list": (("{p} == null", "{p} is required"), ("{p} is null", "no {p} given")),
        "fn": (("{p} == null", "{p} is required"),),
    },
    "ruby": {
        "ref": (("{p}.nil?", "{p} is required"), ("!{p}", "missing {p}"), ("{p}.nil?", "{p} must not be nil")),
        "str": (("{p}.nil? || {p}.empty?", "{p} must not be empty"), ("{p}.to_s.empty?", "{p} is empty"), ("{p}.nil?", "{p} is required")),
        "num": (("{p}.negative?", "{p} must not be negative"), ("{p} < 0", "{p} must not be negative"), ("{p}.zero?", "{p} is zero")),
        "list": (("{p}.empty?", "no {p} given"), ("{p}.nil?", "{p} is required"), ("{p}.nil? || {p}.empty?", "{p} must not be empty")),
        "fn": (("!{p}.respond_to?(:call)", "{p} must be callable"), ("{p}.nil?", "{p} is required")),
    },
    "php": {
        "ref": (("{p} === null", "{p} must not be null"), ("!{p}", "{p} is required"), ("empty({p})", "missing {p}")),
        "str": (("{p} === ''", "{p} must not be empty"), ("trim({p}) === ''", "{p} is blank"), ("empty({p})", "{p} is required")),
        "num": (("{p} < 0", "{p} must not be negative"), ("{p} <= 0", "{p} must be positive"), ("!is_numeric({p})", "{p} must be a number")),
        "list": (("empty({p})", "{p} must not be empty"), ("count({p}) === 0", "no {p} given"), ("!is_array({p})", "{p} must be an array")),
        "fn": (("!is_callable({p})", "{p} must be callable"), ("{p} === null", "{p} is required")),
    },
    "swift": {
        "optional": (("{p} == nil", "{p} is required"), ("{p} == nil", "missing {p}"), ("nil == {p}", "{p} must not be nil")),
        "str": (("{p}.isEmpty", "{p} must not be empty"), ("{p} == \"\"", "missing {p}"), ("{p}.count == 0", "{p} is empty")),
        "num": (("{p} < 0", "{p} must not be negative"), ("{p} <= 0", "{p} must be positive")),
        "list": (("{p}.isEmpty", "no {p} given"), ("{p}.count == 0", "{p} is empty")),
    },
    "lua": {
        "ref": (("not {p}", "{p} is required"), ("{p} == nil", "missing {p}"), ('type({p}) ~= "table"', "{p} must be a table")),
        "str": (('type({p}) ~= "string"', "{p} must be a string"), ('{p} == nil or {p} == ""', "{p} must not be empty"), ("not {p}", "missing {p}")),
        "num": (('type({p}) ~= "number"', "{p} must be a number"), ("{p} < 0", "{p} must not be negative"), ("{p} == nil", "{p} is required")),
        "list": (("not {p} or #{p} == 0", "no {p} given"), ('type({p}) ~= "table"', "{p} must be a table"), ("{p} == nil", "{p} is required")),
        "fn": (('type({p}) ~= "function"', "{p} must be a function"), ("not {p}", "missing {p}")),
    },
    "shell": {
        "ref": (('[ -z "${p}" ]', "{p} is required"), ('[[ -z "${p}" ]]', "missing {p}"), ('test -z "${p}"', "{p} must not be empty"),
                ('[ -z "${{{p}:-}}" ]', "no {p} given")),
    },
}  # fmt: skip
_SCRIPT_FAILURES = (
    "throw new Error({q}{msg}{q});", "throw new TypeError({q}{msg}{q});", "throw new Error(`{f}: {msg}`);",
    "throw new RangeError({q}{msg}{q});",
)  # fmt: skip
# What to do when a parameter is wrong, besides returning.
FAILURES: dict[str, tuple[str, ...]] = {
    "python": ("raise ValueError({q}{msg}{q})", "raise TypeError({q}{msg}{q})", "raise ValueError(f{q}{f}: {msg}{q})",
               "raise RuntimeError({q}{msg}{q})", "raise ValueError(f{q}{msg}, got {{{p}!r}}{q})"),
    "javascript": _SCRIPT_FAILURES, "typescript": _SCRIPT_FAILURES, "tsx": _SCRIPT_FAILURES,
    "java": ('throw new IllegalArgumentException("{msg}");', 'throw new NullPointerException("{msg}");',
             'throw new IllegalStateException("{msg}");', 'throw new IllegalArgumentException("{msg}: " + {p});'),
    "kotlin": ('throw IllegalArgumentException("{msg}")', 'throw IllegalStateException("{msg}")', 'error("{msg}")',
               'throw IllegalArgumentException("{f}: {msg}")'),
    "go": ('panic("{msg}")', 'panic("{f}: {msg}")'),
    "rust": ('panic!("{msg}");',),
    "c": (),
    "cpp": ('throw std::invalid_argument("{msg}");', 'throw std::runtime_error("{f}: {msg}");', 'throw std::logic_error("{msg}");'),
    "csharp": ('throw new ArgumentException("{msg}", nameof({p}));', "throw new ArgumentNullException(nameof({p}));",
               'throw new InvalidOperationException("{msg}");', "throw new ArgumentOutOfRangeException(nameof({p}));"),
    "ruby": ("raise ArgumentError, {q}{msg}{q}", "raise ArgumentError.new({q}{msg}{q})", 'raise "{msg}"', "fail ArgumentError, {q}{msg}{q}"),
    "php": ("throw new \\InvalidArgumentException('{msg}');", "throw new \\RuntimeException('{msg}');",
            "throw new \\LogicException('{f}: {msg}');", "throw new \\InvalidArgumentException(sprintf('%s: {msg}', __METHOD__));"),
    "swift": ('fatalError("{msg}")', 'preconditionFailure("{msg}")'),
    "lua": ('error("{msg}")', 'error("{f}: {msg}", 2)', 'error("{msg}", 2)'),
    "shell": ('echo "{msg}" >&2\n\treturn 1', 'echo "{f}: {msg}" >&2\n\treturn 2', 'printf "%s\\n" "{msg}" >&2\n\treturn 1'),
}  # fmt: skip
# How a condition leads to a statement `{s}`, most usual form first.
FORMS: dict[str, tuple[str, ...]] = {
    "python": ("if {c}:\n\t{s}",),
    "ruby": ("{s} if {c}", "if {c}\n\t{s}\nend", "{s} if {c}"),
    "lua": ("if {c} then\n\t{s}\nend", "if {c} then {s} end"),
    "shell": ("if {c}; then\n\t{s}\nfi",),
    "go": ("if {c} {{\n\t{s}\n}}",),
    "rust": ("if {c} {{\n\t{s}\n}}",),
    "swift": ("if {c} {{\n\t{s}\n}}", "if {c} {{ {s} }}"),
    "kotlin": ("if ({c}) {{\n\t{s}\n}}", "if ({c}) {s}"),
    "php": ("if ({c}) {{\n\t{s}\n}}",),
}  # fmt: skip
_BRACED = ("if ({c}) {{\n\t{s}\n}}", "if ({c}) {s}", "if ({c}) {{\n\t{s}\n}}")
_SCRIPT_LOGS = ("console.log({q}{msg}{q});", "console.debug({q}{msg}{q}, {p});", "console.log(`{f}: {msg}`);",
                "console.info({q}[{f}] {msg}{q});", "console.warn({q}{msg}{q});", "console.log({q}{f}{q}, {{ {p} }});")  # fmt: skip
LOGS: dict[str, tuple[str, ...]] = {
    "python": ("{l}.debug({q}{msg}{q})", "{l}.debug({q}{f}: {p}=%r{q}, {p})", "{l}.info({q}{msg}{q})", "print(f{q}{f}: {{{p}!r}}{q})",
               "{l}.debug(f{q}{f} {p}={{{p}}}{q})", "{l}.warning({q}{f}: {msg}{q})"),
    "javascript": _SCRIPT_LOGS, "typescript": _SCRIPT_LOGS, "tsx": _SCRIPT_LOGS,
    "java": ('Log.d({tag}, "{msg}");', 'Log.d({tag}, "{f}: " + {p});', 'Log.i({tag}, "{f}: {msg}");', 'System.out.println("{msg}");',
             'Log.v({tag}, "{f} called with " + {p});', 'Log.w({tag}, "{msg}");'),
    "kotlin": ('Log.d({tag}, "{msg}")', 'println("{f}: ${p}")', 'Log.i({tag}, "{f}: {msg}")', 'Log.v({tag}, "{p}=${p}")',
               'Log.w({tag}, "{msg}")', 'println("{msg}")'),
    "go": ('log.Printf("{f}: {msg}")', 'log.Println("{msg}")', 'log.Printf("{f}: {p}=%v", {p})', 'fmt.Fprintln(os.Stderr, "{msg}")',
           'fmt.Printf("{f} {p}=%v\\n", {p})', 'log.Print("{msg}")'),
    "rust": ('log::debug!("{msg}");', 'tracing::debug!("{f}: {msg}");', 'eprintln!("{msg}");', 'log::trace!("{f} {p}={{:?}}", {p});',
             'println!("{f}: {{:?}}", {p});', 'tracing::info!("{msg}");'),
    "c": ('fprintf(stderr, "{msg}\\n");', 'printf("{f}: {msg}\\n");', 'fprintf(stderr, "%s: {msg}\\n", __func__);', 'puts("{msg}");',
          'fputs("{f}: {msg}\\n", stderr);', 'LOG_DEBUG("{msg}");'),
    "cpp": ('std::cerr << "{msg}" << std::endl;', 'std::cout << "{f}: {msg}\\n";', 'fprintf(stderr, "{f}: {msg}\\n");', 'LOG(INFO) << "{msg}";',
            'std::clog << "{msg}" << std::endl;', 'printf("{msg}\\n");'),
    "csharp": ('Debug.Log("{msg}");', 'Debug.Log($"{f}: {{{p}}}");', 'Console.WriteLine("{msg}");', 'Debug.LogWarning("{f}: {msg}");',
               'Debug.Log("{f} " + {p});', 'Console.WriteLine($"{f} {p}={{{p}}}");'),
    "ruby": ('puts "{msg}"', 'logger.debug("{msg}")', 'warn "{f}: {msg}"', 'logger.info {{ "{msg}" }}', 'puts "{f}: #{{{p}.inspect}}"',
             "$stderr.puts {q}{msg}{q}"),
    "php": ("error_log('{msg}');", "$this->logger->debug('{msg}');", "error_log(sprintf('{f}: %s', {p}));", "trigger_error('{msg}', E_USER_NOTICE);",
            "$this->logger->info('{f}: {msg}');", "error_log(__METHOD__ . ': {msg}');"),
    "swift": ('print("{msg}")', 'print("{f}: \\({p})")', 'NSLog("{msg}")', 'debugPrint("{f}", {p})', 'os_log("{msg}")', 'NSLog("[{f}] {msg}")'),
    "lua": ('print("{msg}")', 'print("{f}", {p})', 'io.stderr:write("{msg}\\n")', 'log.debug("{msg}")', 'print(("{f}: %s"):format(tostring({p})))',
            'io.write("{msg}\\n")'),
    "shell": ('echo "{msg}"', 'echo "{f}: {msg}" >&2', 'printf "%s\\n" "{msg}"', 'log "{msg}"', 'echo "[debug] {f}" >&2', 'logger -t {f} "{msg}"'),
}  # fmt: skip
ASSERTIONS: dict[str, tuple[str, ...]] = {
    "python": ("assert {ok}", "assert {ok}, {q}{msg}{q}", "assert {ok}, f{q}{f}: {msg}{q}"),
    "javascript": ("console.assert({ok}, {q}{msg}{q});", "assert({ok}, {q}{msg}{q});", "assert({ok});"),
    "typescript": ("console.assert({ok}, {q}{msg}{q});", "invariant({ok}, {q}{msg}{q});", "assert({ok});"),
    "tsx": ("console.assert({ok}, {q}{msg}{q});", "invariant({ok}, {q}{msg}{q});", "assert({ok});"),
    "java": ("assert {ok};", 'assert {ok} : "{msg}";', "Objects.requireNonNull({p});", 'Preconditions.checkArgument({ok}, "{msg}");'),
    "kotlin": ('require({ok}) {{ "{msg}" }}', 'check({ok}) {{ "{msg}" }}', "require({ok})", "assert({ok})"),
    "go": (),
    "rust": ('assert!({ok}, "{msg}");', "debug_assert!({ok});", 'debug_assert!({ok}, "{msg}");', "assert!({ok});"),
    "c": ("assert({ok});", 'assert({ok} && "{msg}");'),
    "cpp": ("assert({ok});", 'assert({ok} && "{msg}");'),
    "csharp": ('Debug.Assert({ok}, "{msg}");', "Debug.Assert({ok});", "System.Diagnostics.Debug.Assert({ok});"),
    "ruby": (),
    "php": ("assert({ok});", "assert({ok}, '{msg}');", "\\assert({ok});"),
    "swift": ('assert({ok}, "{msg}")', 'precondition({ok}, "{msg}")', "assert({ok})"),
    "lua": ('assert({ok}, "{msg}")', "assert({ok})", 'assert({ok}, "{f}: {msg}")'),
    "shell": (),
}  # fmt: skip
_SCRIPT_LAST = ("console.log({q}{f} done{q});", "this.emit({q}{f}{q});", "performance.mark({q}{f}-end{q});", "onComplete?.();",
                "stats.{n} += 1;", "trackEvent({q}{f}{q});", "metrics.increment({q}{f}{q});")  # fmt: skip
LAST: dict[str, tuple[str, ...]] = {
    "python": ("self._{n} = True", "{l}.debug({q}{msg} done{q})", "gc.collect()", "self.updated_at = time.time()",
               "stats[{q}{n}{q}] += 1", "metrics.increment({q}{n}{q})", "sys.stdout.flush()"),
    "javascript": _SCRIPT_LAST, "typescript": _SCRIPT_LAST, "tsx": _SCRIPT_LAST,
    "java": ('Log.d({tag}, "{f} done");', "notifyAll();", "counter.incrementAndGet();", "lastUpdated = System.currentTimeMillis();",
             'metrics.record("{f}");', "System.out.flush();"),
    "kotlin": ('Log.d({tag}, "{f} done")', "lastUpdated = System.currentTimeMillis()", "counter.incrementAndGet()", 'metrics.record("{f}")',
               "notifyListeners()", 'println("{f} done")'),
    "go": ('log.Println("{f} done")', "runtime.GC()", 'metrics.Inc("{f}")', 'fmt.Println("{msg} done")', "atomic.AddInt64(&counter, 1)",
           'log.Printf("{f} finished")'),
    "rust": ('log::debug!("{f} done");', 'println!("{msg} done");', "COUNTER.fetch_add(1, Ordering::Relaxed);", 'metrics::counter!("{f}", 1);',
             'tracing::trace!("{f} finished");', 'eprintln!("{f} done");'),
    "c": ('printf("{f} done\\n");', "fflush(stdout);", 'fprintf(stderr, "{f}: done\\n");', "num_calls++;", "errno = 0;", 'LOG_DEBUG("{f} done");'),
    "cpp": ('std::cerr << "{f} done" << std::endl;', "std::cout.flush();", "++num_calls_;", 'LOG(INFO) << "{f} done";', "fflush(stdout);",
            'printf("{f} done\\n");'),
    "csharp": ('Debug.Log("{f} done");', "OnCompleted?.Invoke();", "_isDirty = true;", "GC.Collect();", 'Console.WriteLine("{f} done");',
               "_lastUpdated = DateTime.UtcNow;"),
    "ruby": ("@{n} = true", 'logger.debug("{f} done")', "@updated_at = Time.now", 'instrument("{n}")', "GC.start", "notify_observers"),
    "php": ("$this->{v} = true;", "$this->logger->debug('{f} done');", "error_log('{f} done');", "$this->updatedAt = time();",
            "gc_collect_cycles();", "flush();"),
    "swift": ('print("{f} done")', "isDirty = true", "lastUpdated = Date()", 'NSLog("{f} done")', "setNeedsLayout()", "delegate?.didFinish()"),
    "lua": ('print("{f} done")', "collectgarbage()", 'io.write("{f} done\\n")', 'log.debug("{f} done")', "io.stdout:flush()", "self.dirty = true"),
    "shell": ('echo "{f} done"', "sync", 'log "{f} done"', 'printf "%s\\n" "{f} done" >&2', 'touch "$HOME/.{f}.stamp"', "unset tmp"),
}  # fmt: skip
_NEGATIONS = (
    (r"^(.+) is None$", r"\1 is not None"), (r"^(.+) == (null|nil|NULL|nullptr)$", r"\1 != \2"), (r"^(.+) === (.+)$", r"\1 !== \2"),
    (r"^(.+) !== (.+)$", r"\1 === \2"), (r"^(.+) ~= (.+)$", r"\1 == \2"), (r"^(\S+) < (\S+)$", r"\1 >= \2"), (r"^(\S+) <= (\S+)$", r"\1 > \2"),
    (r"^(\S+) > (\S+)$", r"\1 <= \2"), (r"^(\S+) == (0|\"\")$", r"\1 != \2"), (r"^not (\S+|\w+\([^()]*\))$", r"\1"), (r"^!([\w.$]+(?:\([^()]*\))?)$", r"\1"),
    (r"^(\S+)\.isEmpty\(\)$", r"\1.isNotEmpty()"), (r"^([\w.]+\.(?:is_empty|isEmpty|empty|is_none|isBlank)(?:\(\))?)$", r"!\1"),
    (r"^(\S+)\.is_none\(\)$", r"\1.is_some()"), (r"^(empty\(\S+\)|string\.\w+\(\S+\))$", r"!\1"),
)  # fmt: skip


def negated(condition: str, language: str) -> str | None:
    """The opposite of a condition of `CONDITIONS`, or None where that reads badly."""
    if " or " in condition or "||" in condition:
        return None
    for pattern, turned in _NEGATIONS:
        if language == "java" and "isNotEmpty" in turned:
            continue
        result, num_found = re.subn(pattern, turned, condition)
        if num_found:
            return result
    return None


_EMPTY_RESULTS = {
    "python": {"None": "return", "bool": "return False", "str": 'return ""', "int": "return 0", "list": "return []", "dict": "return {}"},
    "java": {"void": "return;", "boolean": "return false;", "int": "return 0;", "long": "return 0;", "String": "return null;", "double": "return 0;"},
    "csharp": {"void": "return;", "bool": "return false;", "int": "return 0;", "float": "return 0f;", "string": "return null;"},
    "kotlin": {"": "return", "Unit": "return", "Boolean": "return false", "Int": "return 0", "String": 'return ""'},
    "swift": {"": "return", "Void": "return", "Bool": "return false", "Int": "return 0", "String": 'return ""'},
    "rust": {"": "return;", "bool": "return false;", "usize": "return 0;", "String": "return String::new();", "u64": "return 0;"},
    "c": {"void": "return;", "int": "return -1;", "bool": "return false;", "size_t": "return 0;"},
    "cpp": {"void": "return;", "int": "return -1;", "bool": "return false;", "size_t": "return 0;", "std::string": "return {};"},
    "php": {"void": "return;", "bool": "return false;", "array": "return [];", "int": "return 0;", "string": "return '';"},
    "typescript": {"void": "return;", "boolean": "return false;", "string": "return '';", "number": "return 0;"},
    "go": {"": "return", "bool": "return false", "string": 'return ""', "int": "return 0", "error": "return nil"},
}  # fmt: skip


def early_returns(function: Function) -> list[str]:
    """Statements that leave the function with nothing, as its result allows."""
    language, result = function.language, function.result.strip()
    if language == "tsx":
        language = "typescript"
    known = _EMPTY_RESULTS.get(language, {}).get(result)
    if known is not None:
        return [known]
    if language in ("javascript", "typescript") and not result:
        return ["return null;", "return;", "return undefined;"] if function.has_value else ["return;"]
    if language == "python" and not result:
        return ["return None", "return None", "return False"] if function.has_value else ["return"]
    if language in ("ruby", "lua"):
        return {"ruby": ["return", "return nil"], "lua": ["return nil", "return"]}[language]
    if language == "shell":
        return ["return 0", "return 1"]
    if language == "php" and not result:
        return ["return null;"] if function.has_value else ["return;"]
    optional = (
        (result.startswith("Option<"), "return None;"),
        (result.endswith("?") and language in ("kotlin", "swift"), "return null" if language == "kotlin" else "return nil"),
        (result.endswith("?") and language == "csharp", "return null;"),
        (result.startswith("?") and language == "php", "return null;"),
        ("| null" in result, "return null;"), ("| undefined" in result, "return undefined;"), (result == "Promise<void>", "return;"),
        (result.startswith("Optional[") or result.endswith("| None"), "return None"),
        (result.endswith("*") and language == "c", "return NULL;"), (result.endswith("*") and language == "cpp", "return nullptr;"),
        (result.startswith("[]") or (result.startswith("*") and language == "go"), "return nil"),
        (result.startswith(("List<", "Map<")) and language == "java", "return null;"),
    )  # fmt: skip
    return [statement for is_so, statement in optional if is_so][:1]


def _go_failures(function: Function, message: str) -> list[str]:
    result = function.result.strip()
    makers = [f'fmt.Errorf("{message}")'] if '"fmt"' in function.file_text else []
    makers += [f'errors.New("{message}")'] if '"errors"' in function.file_text else []
    if result == "error":
        return [f"return {maker}" for maker in makers]
    pair = re.fullmatch(r"\((\S+), error\)", result)
    if not pair:
        return early_returns(function)
    first = pair[1]
    zero = {"string": '""', "bool": "false", "int": "0", "int64": "0"}.get(first)
    if zero is None:
        zero = "nil" if first.startswith(("*", "[]", "map[")) else None
    return [f"return {zero}, {maker}" for maker in makers] if zero else []


def _rust_failures(function: Function, message: str) -> list[str]:
    result = function.result.strip()
    if result.startswith("PyResult"):
        return [f'return Err(PyValueError::new_err("{message}"));', f'return Err(PyTypeError::new_err("{message}"));']
    if result.startswith(("Result<", "anyhow::Result")):
        return [f'return Err("{message}".into());', f'return Err(Error::new("{message}"));']
    return early_returns(function)


def failures(function: Function, message: str, rng: random.Random) -> str | None:
    """A statement that says that a parameter is wrong."""
    language = function.language
    if language == "go":
        found = _go_failures(function, message) or [one.format(msg=message, f=function.name) for one in FAILURES["go"]]
    elif language == "rust":
        found = _rust_failures(function, message)
    elif language in ("c", "swift"):
        found = [*early_returns(function), *early_returns(function), *(FAILURES[language] if language == "swift" else ())]
    else:
        found = list(FAILURES[language])
    return rng.choice(found) if found else None


def forms(language: str) -> tuple[str, ...]:
    """How a statement is put under a condition."""
    return FORMS.get(language, _BRACED)


def words_of(name: str) -> str:
    """The words of a name, as a message says them."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.:]+", " ", name).strip().lower()


def messages(name: str, rng: random.Random) -> str:
    """A line for the log about a function."""
    words = words_of(name)
    forms_of_message = ("entering {n}", "{n} called", "starting {w}", "{w} started", "running {w}", "about to {w}", "in {n}", "{w}: begin")
    return rng.choice(forms_of_message).format(n=name, w=words)


# Names of new fields, parameters and entries, with the kind of their values.
NEW_NAMES: tuple[tuple[str, str], ...] = (
    ("timeout", "num"), ("max_retries", "num"), ("verbose", "bool"), ("label", "str"), ("enabled", "bool"), ("description", "str"),
    ("priority", "num"), ("cache_size", "num"), ("owner", "str"), ("strict", "bool"), ("retry_delay", "num"), ("locale", "str"),
    ("dry_run", "bool"), ("batch_size", "num"), ("debug", "bool"), ("category", "str"), ("max_depth", "num"), ("region", "str"),
)  # fmt: skip
NUMBERS = ("3", "5", "10", "30", "100", "256")
TEXTS = ("default", "auto", "main", "none", "standard", "custom")
NEW_WORDS = ("pending", "unknown", "archived", "cancelled", "deferred", "custom", "draft", "expired", "paused", "legacy", "partial", "hidden")
# The type of a field or parameter by the kind of its value.
TYPE_NAMES: dict[str, dict[str, str]] = {
    "python": {"num": "int", "bool": "bool", "str": "str"},
    "typescript": {"num": "number", "bool": "boolean", "str": "string"},
    "java": {"num": "int", "bool": "boolean", "str": "String"},
    "kotlin": {"num": "Int", "bool": "Boolean", "str": "String"},
    "go": {"num": "int", "bool": "bool", "str": "string"},
    "rust": {"num": "usize", "bool": "bool", "str": "String"},
    "c": {"num": "int", "bool": "int", "str": "const char *"},
    "cpp": {"num": "int", "bool": "bool", "str": "std::string"},
    "csharp": {"num": "int", "bool": "bool", "str": "string"},
    "php": {"num": "int", "bool": "bool", "str": "string"},
    "swift": {"num": "Int", "bool": "Bool", "str": "String"},
}  # fmt: skip
IMPORTS: dict[str, tuple[str, ...]] = {
    "python": ("import logging", "import functools", "from collections import defaultdict", "import contextlib", "from dataclasses import dataclass",
               "import time", "from typing import Any", "import warnings", "from pathlib import Path", "import json"),
    "javascript": ("debounce:lodash/debounce", "{ readFile }:node:fs/promises", "EventEmitter:events", "path:path", "{ inspect }:util",
                   "assert:assert", "{ performance }:perf_hooks", "logger:./logger"),
    "java": ("java.util.Objects", "java.util.concurrent.TimeUnit", "java.util.Collections", "java.io.IOException", "java.util.Optional",
             "java.util.concurrent.atomic.AtomicInteger", "java.nio.charset.StandardCharsets"),
    "kotlin": ("java.util.concurrent.TimeUnit", "java.io.File", "kotlin.math.max", "java.util.UUID", "kotlin.random.Random",
               "java.util.concurrent.atomic.AtomicBoolean"),
    "go": ("log", "strings", "sync", "time", "errors", "context", "sync/atomic", "path/filepath"),
    "rust": ("std::collections::HashMap", "std::time::Duration", "std::sync::Arc", "std::fmt", "std::path::PathBuf", "std::borrow::Cow",
             "std::collections::BTreeMap"),
    "c": ("<assert.h>", "<stdint.h>", "<errno.h>", "<stdbool.h>", "<string.h>", "<limits.h>", "<stdio.h>"),
    "cpp": ("<algorithm>", "<cassert>", "<memory>", "<unordered_map>", "<iostream>", "<utility>", "<stdexcept>", "<optional>"),
    "csharp": ("System.Linq", "System.Threading.Tasks", "System.Collections.Concurrent", "System.Text", "System.IO", "System.Diagnostics"),
    "ruby": ("json", "set", "logger", "time", "securerandom", "forwardable", "digest"),
    "php": ("Psr\\Log\\LoggerInterface", "InvalidArgumentException", "RuntimeException", "DateTimeImmutable", "Psr\\Cache\\CacheItemPoolInterface",
            "JsonException"),
    "swift": ("Foundation", "os.log", "Combine", "UIKit", "CoreLocation", "AVFoundation"),
    "lua": ("log:log", "inspect:inspect", "lfs:lfs", "utils:utils", "json:json", "config:config"),
}  # fmt: skip
DECORATORS: dict[str, tuple[str, ...]] = {
    "python": ("@functools.lru_cache(maxsize=128)", "@log_calls", '@deprecated("use the new API instead")', "@retry(times=3)", "@override",
               "@timed", '@pytest.mark.slow', "@functools.wraps(func)", "@no_type_check", "@cached"),
    "typescript": ("@Memoize()", "@LogCall()", "@Deprecated()", "@bound", "@Retry(3)", "@Throttle(100)"),
    "java": ("@Deprecated", '@SuppressWarnings("unchecked")', "@Nullable", "@VisibleForTesting", "@WorkerThread", '@SuppressLint("NewApi")', "@UiThread"),
    "kotlin": ('@Deprecated("Use the new API")', '@Suppress("UNUSED_PARAMETER")', "@Synchronized", "@WorkerThread", "@VisibleForTesting", "@UiThread"),
    "csharp": ('[Obsolete("Use the new API")]', "[MethodImpl(MethodImplOptions.AggressiveInlining)]", "[DebuggerStepThrough]", "[Pure]",
               '[Conditional("DEBUG")]', "[ExcludeFromCodeCoverage]"),
    "rust": ("#[inline]", "#[must_use]", "#[allow(dead_code)]", "#[tracing::instrument(skip_all)]", "#[cold]", "#[inline(always)]", "#[doc(hidden)]"),
    "php": ("#[\\ReturnTypeWillChange]", "#[Deprecated]", "#[Pure]", "#[Internal]", "#[Override]", "#[NoDiscard]"),
    "swift": ("@discardableResult", "@available(iOS 13.0, *)", "@MainActor", "@inlinable", "@objc", "@inline(__always)"),
}  # fmt: skip


def styled(name: str, like: str) -> str:
    """A name of lower-case words in the style of another one: `max_size` like `minSize`."""
    parts = re.split(r"[_\- ]", name)
    letters = re.sub(r"[^A-Za-z]", "", like)
    if letters.isupper() and len(letters) > 1:
        return "_".join(parts).upper()
    if "-" in like:
        return "-".join(parts)
    if letters[:1].isupper():
        return "".join(part.capitalize() for part in parts)
    if "_" in like.strip("_") or not re.search(r"[a-z][A-Z]", like):
        return "_".join(parts)
    return parts[0] + "".join(part.capitalize() for part in parts[1:])


def renamed(line: str, old: str, new: str) -> str:
    """A line with one word changed wherever it is a part of a name, in the style it has there."""
    for before, after in ((old, new), (old.lower(), new.lower()), (old.upper(), new.upper()), (old.capitalize(), new.capitalize())):
        line = line.replace(before, after)
    return line


def pick_new(names: Sequence[str], taken: str, rng: random.Random) -> str | None:
    """One of the names that a text does not have yet."""
    free = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", taken, re.I)]
    return rng.choice(free) if free else None
