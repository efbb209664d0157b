/**
 * What goes over the wire, as the service's OpenAPI document describes it; names are the wire's.
 *
 * A newer service may send more members than stand here.
 */

export type Status = "applied" | "unchanged" | "needs_review" | "rejected";

/** A file as its bytes, in any text encoding. */
export interface Base64Content {
  base64: string;
}

/** Which drafts pass; all but `exact` may change the text, and the server has to allow them. */
export type Acceptance = "exact" | "typical" | "adaptive" | "top-n";

/** How the answer is drawn; the default is greedy, and a seed makes a draw repeatable. */
export interface Sampling {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  seed?: number;
  max_tokens?: number | null;
  acceptance?: Acceptance;
}

/** Changed code with markers, or another form of the service's docs/agent-forms.md. */
export type Update = string | Record<string, unknown> | Record<string, unknown>[];

/** How an update is written. */
export type UpdateFormat =
  | "old_new"
  | "hashline"
  | "line_range"
  | "json_patch"
  | "lazy"
  | "search_replace"
  | "apply_patch"
  | "diff";

/** What is sent to `POST /v1/apply`; the service's own default holds for all that is left out. */
export interface ApplyBody {
  original: string | Base64Content;
  update: Update;
  /** Left out, by its shape. */
  format?: UpdateFormat | null;
  instruction?: string | null;
  /** Name of the file, for the diff. */
  path?: string | null;
  /** Language of the file; left out, by its name and content. */
  language?: string | null;
  /** What the model rewrites: the whole file or the regions around the edit. */
  scope?: "auto" | "file" | "region";
  /** `off` returns rejected results as well. */
  checks?: "on" | "off";
  stream?: boolean;
  /** A guess of the result; it only makes the answer faster. */
  prediction?: string | null;
  /** `merge`: the answer is one of the valid merges; `none`: the model writes freely. */
  constraint?: "merge" | "none" | null;
  /** `never`: the deterministic merge with its verdict; `auto`: that, where it is known to do. */
  use_model?: "auto" | "always" | "never" | null;
  /** What becomes of a doubt: `ask` for a choice, take the `best` one, or `refuse`. */
  on_doubt?: "ask" | "best" | "refuse" | null;
  /** The `id` of a choice that this edit was answered with. */
  resolve?: string | null;
  sampling?: Sampling;
  speculation?: "on" | "off";
  /** Longest draft in tokens. */
  k?: number | null;
  priority?: "interactive" | "batch";
  model?: string | null;
  response?: "file" | "diff" | "both" | "edits";
  /** Form of `edits`; unset, the positions of earlier releases. */
  edits_format?: "lsp" | "offsets" | null;
  /** What the positions of `edits` count. */
  position_encoding?: "utf-8" | "utf-16" | "utf-32";
  include?: ("decisions" | "trace")[];
  /** Seconds after which the service gives the edit up. */
  deadline_s?: number | null;
}

/** One thing that the checks found, with a hint for whoever wrote the update. */
export interface Finding {
  code: string;
  severity: "error" | "warning";
  message: string;
  hint: string;
  line?: number | null;
}

/** A place in the original as the Language Server Protocol counts: from 0, in UTF-16 units. */
export interface Position {
  line: number;
  character: number;
}

/** What lies between two places of the original. */
export interface Range {
  start: Position;
  end: Position;
}

/** A part of the original, and the text that takes its place; `edits_format` says which members. */
export interface TextEdit {
  range?: Range;
  start?: Position | number;
  end?: Position | number;
  newText?: string;
  text?: string;
}

/** Lines of the original that the model rewrote, both included, counted from 1. */
export interface Region {
  start_line: number;
  end_line: number;
}

/** A line of the original that is not in the result, counted from 1. */
export interface RemovedLine {
  line: number;
  text: string;
}

/** One way on: the line that it writes, where that comes from, and how probable it was. */
export interface Branch {
  text: string;
  origin: string;
  probability: number;
}

/** A choice of the model among valid merges, at a line of the result, counted from 1. */
export interface Decision {
  line: number;
  chosen: Branch;
  alternatives: Branch[];
  probability: number;
  outside_mass: number;
}

/** Lines of the original, both included, counted from 1, and the definition around them. */
export interface ChoiceWhere {
  symbol: string | null;
  start_line: number;
  end_line: number;
}

/**
 * One text that an update in doubt may mean: `resolve` with its `id` makes it the result.
 *
 * `diff` is what sets it apart from the other choices; `diff_lines_left_out` lines are cut off.
 */
export interface Choice {
  id: string;
  diff: string;
  diff_lines_left_out: number;
  where: ChoiceWhere;
  probability: number;
  reason: string;
}

/** What the service's judge said of an edit in doubt: a choice's `id`, or null for none of them. */
export interface JudgeWord {
  model: string;
  choice: string | null;
  seconds: number;
}

/** Tokens of the request; `cached_tokens` of the prompt were not computed again. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  cached_tokens: number;
}

/** Draft tokens that were copied from one reference. */
export interface ReferenceUsage {
  drafted: number;
  accepted: number;
}

/** How far drafts carried the answer; `forced` tokens left the model no choice. */
export interface Speculation {
  drafted: number;
  accepted: number;
  forced?: number;
  target_passes: number;
  decode_passes: number;
  mean_accepted_length: number;
  tokens_per_target_pass: number;
  by_reference: Record<string, ReferenceUsage>;
  acceptance?: Acceptance;
}

/** One search for a prompt's beginning below the KV cache; estimates are seconds. */
export interface PrefixLookup {
  tier: "host" | "redis";
  decision: "load" | "compute" | "miss";
  reason: string | null;
  tokens: number;
  seconds: number;
  load_estimate: number | null;
  compute_estimate: number | null;
}

/** Seconds; `total` includes the work on text before and after the model. */
export interface Timing {
  queue: number;
  load?: number;
  prefill: number;
  decode: number;
  total: number;
  prefix_lookups?: PrefixLookup[];
}

/** A token as text: `forced` by the valid merges, `drafted` and accepted, or `written`. */
export interface TracedToken {
  text: string;
  origin: "forced" | "drafted" | "written";
}

/**
 * What one step wrote, `at_s` seconds after the model was first asked. `rejected` are the
 * tokens of its draft, copied from `drafter`, that did not hold.
 */
export interface TracedStep {
  at_s: number;
  drafter: string | null;
  tokens: TracedToken[];
  rejected: string[];
}

/** The steps of one region; `region` is its number in the events of a stream. */
export interface RegionTrace {
  region: number;
  steps: TracedStep[];
}

/** A result with its verdict and figures, as it is sent. */
export interface WireResult {
  id: string;
  status: Status;
  confidence: number | null;
  merged: string | Base64Content | null;
  diff: string | null;
  edits: TextEdit[] | null;
  findings: Finding[];
  removed_lines: RemovedLine[];
  decisions: Decision[] | null;
  choices: Choice[];
  judge?: JudgeWord | null;
  source: "model" | "merge" | "original" | "update" | "resolved" | "judge" | "writer";
  scope: "file" | "region";
  regions: Region[];
  usage: Usage;
  speculation: Speculation;
  timing: Timing;
  model: string;
  system_fingerprint: string | null;
  /** How the model's answers came about, those of dropped attempts included. */
  trace?: RegionTrace[] | null;
  /** The seconds that the edit had, where `deadline_s` asked for more. */
  deadline_s?: number | null;
}

/** Why the service refused (RFC 9457); `code` is its short name. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  field?: string | null;
  value?: number | null;
  limit?: number | null;
  remedy?: string | null;
  retry_after_s?: number | null;
  finish_reason?: "length" | null;
  id?: string | null;
  request_id?: string | null;
  findings?: Finding[] | null;
  choices?: Choice[] | null;
}

/** One of several files, and its update unless one patch speaks of all. */
export interface FileBody {
  /** Name of the file, which no other one of them has. */
  path: string;
  original: string | Base64Content;
  update?: Update | null;
  format?: UpdateFormat | null;
  /** In the place of the one for all files. */
  instruction?: string | null;
  language?: string | null;
  prediction?: string | null;
  resolve?: string | null;
}

/** What is sent to `POST /v1/apply` for several files. */
export interface FilesBody
  extends Omit<
    ApplyBody,
    "original" | "update" | "format" | "path" | "language" | "stream" | "prediction" | "resolve"
  > {
  files: FileBody[];
  /** A `*** Begin Patch` patch or a unified diff of several files. */
  update?: string | null;
  format?: "apply_patch" | "diff" | null;
  /** No result is returned unless all files are applied or unchanged. */
  atomic?: boolean;
  stream?: false;
}

/**
 * What became of one file: a `result`, or a `problem` that says why there is none.
 *
 * There is neither for a file that is deleted, moved as it is or added without any text, nor for one
 * that a common update does not speak of (`action` `none`).
 */
export interface WireFileAnswer {
  path: string;
  action: "update" | "add" | "delete" | "move" | "none";
  new_path?: string | null;
  result?: WireResult | null;
  problem?: Problem | null;
}

/** What became of all files; `status` is the worst one, `in_doubt` has the paths with choices. */
export interface WireFilesResult {
  status: "applied" | "unchanged" | "needs_review" | "rejected" | "failed";
  atomic: boolean;
  files: WireFileAnswer[];
  in_doubt: string[];
  usage: Usage;
  deadline_s?: number | null;
}

/** The model begins to rewrite lines of the original, both included, counted from 1. */
export interface RegionEvent {
  region: number;
  start_line: number;
  end_line: number;
}

/** A piece of a region's new text. */
export interface TokenEvent {
  text: string;
  region: number;
}

/** A region is complete (`region_done`), or what came for it is void (`region_restart`). */
export interface RegionEndEvent {
  region: number;
}

/** The events of a stream by their names. */
export interface WireEvents {
  region: RegionEvent;
  token: TokenEvent;
  region_done: RegionEndEvent;
  region_restart: RegionEndEvent;
  result: WireResult;
  error: Problem;
}

/** A model that is served; `max_context_tokens` bounds the prompt and its answer. */
export interface ModelCard {
  id: string;
  created: number;
  root: string;
  system_fingerprint: string;
  max_context_tokens: number;
  profile: string;
  object?: "model";
  owned_by?: string;
}

/** The models that are served. */
export interface ModelList {
  data: ModelCard[];
  object?: "list";
}
