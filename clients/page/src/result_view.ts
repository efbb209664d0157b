/** An answer to an edit: verdict, question, diff, findings, time, decoding. */

import type { Choice, WireResult } from "apply-client";

import { DiffView } from "./diff_view";
import { button, copyButton, element } from "./elements";
import { findingList } from "./finding_list";
import { percent, questionView } from "./question";
import { Replay } from "./replay";
import { timeLineView } from "./time_line";

const STATUS = {
  applied: "Applied: the checks found nothing",
  unchanged: "Unchanged: the file already has the edit",
  needs_review: "Needs review: something is doubtful",
  rejected: "Rejected: the result is wrong",
} as const;

/** The edit that was answered. */
export interface Asked {
  path: string;
  original: string;
}

/** What can be done with an answer. */
export interface ResultActions {
  resolve(choice: Choice): void;
  takeAsFile(text: string): void;
}

/** Shows one answer at a time in its part of the page. */
export class ResultView {
  #replay: Replay | null = null;
  #diff: DiffView | null = null;

  constructor(
    private readonly parent: HTMLElement,
    private readonly actions: ResultActions,
  ) {}

  clear(): void {
    this.#replay?.stop();
    this.#diff?.destroy();
    this.#replay = null;
    this.#diff = null;
    this.parent.replaceChildren();
  }

  /** Show what is no answer, such as an error. */
  showOther(view: HTMLElement, choices: readonly Choice[] = []): void {
    this.clear();
    this.parent.append(view);
    if (choices.length > 0) {
      this.parent.append(questionView(choices, (choice) => this.actions.resolve(choice)));
    }
  }

  show(answer: WireResult, asked: Asked): void {
    this.clear();
    const merged = typeof answer.merged === "string" ? answer.merged : null;
    this.parent.append(this.#head(answer, merged));
    if (answer.choices.length > 0) {
      this.parent.append(questionView(answer.choices, (choice) => this.actions.resolve(choice)));
    }
    if (merged !== null) {
      this.#showDiff(answer, merged, asked);
    }
    this.parent.append(
      element("div", { class: "columns" }, timeLineView(answer.timing), speculationView(answer)),
    );
    if (answer.trace && answer.trace.some(({ steps }) => steps.length > 0)) {
      this.#replay = new Replay(answer.trace);
      this.parent.append(this.#replay.view);
    }
  }

  #head(answer: WireResult, merged: string | null): HTMLElement {
    const source = `from ${answer.source}${answer.confidence === null ? "" : `, confidence ${percent(answer.confidence)}`}`;
    return element(
      "div",
      { class: "result-head" },
      element(
        "p",
        {},
        element(
          "strong",
          { class: `status ${answer.status}`, "data-status": answer.status },
          STATUS[answer.status],
        ),
        ` (${source})`,
      ),
      merged === null
        ? null
        : element(
            "div",
            { class: "actions" },
            copyButton(() => merged, "the merged file"),
            button("Take as the file", () => this.actions.takeAsFile(merged), { class: "quiet" }),
          ),
    );
  }

  #showDiff(answer: WireResult, after: string, { path, original }: Asked): void {
    const { findings } = answer;
    const place = element("div", { class: "diff-place" });
    const diff = new DiffView(place);
    this.#diff = diff;
    this.parent.append(
      element(
        "section",
        { "aria-labelledby": "diff-title" },
        element("h3", { id: "diff-title" }, "Before and after"),
        place,
      ),
    );
    diff.show({ path, before: original, after, findings });
    if (findings.length > 0) {
      const list = findingList(findings, (line) => diff.goTo(line));
      this.parent.append(
        element(
          "section",
          { "aria-labelledby": "findings-title" },
          element("h3", { id: "findings-title" }, "Findings"),
          list,
        ),
      );
    }
  }
}

function speculationView({ speculation, usage }: WireResult): HTMLElement {
  const { drafted, accepted, forced = 0, target_passes, tokens_per_target_pass } = speculation;
  const facts: [string, string][] =
    target_passes === 0
      ? [["Model", "was not asked"]]
      : [
          ["Tokens written", String(usage.completion_tokens)],
          ["Forward passes", String(target_passes)],
          ["Tokens a pass", tokens_per_target_pass.toFixed(1)],
          ["Forced", String(forced)],
          ["Drafted and accepted", `${accepted} of ${drafted}`],
          ["Prompt from the cache", `${usage.cached_tokens} of ${usage.prompt_tokens}`],
        ];
  const rows = facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value)),
  );
  return element(
    "section",
    { "aria-labelledby": "model-title" },
    element("h3", { id: "model-title" }, "Model"),
    element("dl", { class: "facts" }, ...rows),
  );
}
