/** A result in doubt: its choices as buttons. */

import type { Choice } from "apply-client";

import { button, element } from "./elements";

/** The question; `choose` is called with the choice that is meant. */
export function questionView(
  choices: readonly Choice[],
  choose: (choice: Choice) => void,
): HTMLElement {
  return element(
    "section",
    { class: "question", "aria-labelledby": "question-title" },
    element("h3", { id: "question-title" }, "Which one is meant?"),
    element("ol", {}, ...choices.map((choice, index) => choiceView(choice, index, choose))),
  );
}

function choiceView(choice: Choice, index: number, choose: (choice: Choice) => void): HTMLElement {
  const { symbol, start_line, end_line } = choice.where;
  const lines =
    start_line === end_line ? `line ${start_line}` : `lines ${start_line} to ${end_line}`;
  const place = symbol === null ? lines : `${symbol}, ${lines}`;
  const leftOut = choice.diff_lines_left_out;
  return element(
    "li",
    {},
    button(`Choose ${index + 1}: ${place}`, () => choose(choice), {
      class: "primary",
      "data-choice": choice.id,
    }),
    element("span", { class: "note" }, ` ${percent(choice.probability)} likely`),
    element("p", {}, choice.reason),
    diffLines(choice.diff, `Diff of choice ${index + 1}`),
    leftOut > 0 ? element("p", { class: "note" }, `${leftOut} more lines are not shown.`) : null,
  );
}

function diffLines(diff: string, label: string): HTMLElement {
  const lines = diff.split("\n").map((line) => {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
    return element("span", { class: kind }, `${line}\n`);
  });
  return element(
    "pre",
    { class: "diff", tabindex: 0, role: "region", "aria-label": label },
    ...lines,
  );
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0.995 && share < 1 ? 1 : 0)} %`;
}
