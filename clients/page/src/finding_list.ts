/** Findings as a list, with what to do about each. */

import type { Finding } from "apply-client";

import { button, element } from "./elements";

/** The list; with `show`, a finding's line is a button that leads to it. */
export function findingList(
  findings: readonly Finding[],
  show?: (line: number) => void,
): HTMLElement {
  return element("ul", { class: "findings" }, ...findings.map((finding) => entry(finding, show)));
}

function entry(finding: Finding, show?: (line: number) => void): HTMLElement {
  const { line } = finding;
  let place: HTMLElement | null = null;
  if (typeof line === "number") {
    const text = `Line ${line}`;
    place =
      show === undefined
        ? element("span", {}, text)
        : button(text, () => show(line), { class: "link" });
  }
  return element(
    "li",
    { class: finding.severity },
    element("strong", {}, finding.severity === "error" ? "Error" : "Warning"),
    " ",
    place,
    place === null ? null : " ",
    element("code", {}, finding.code),
    element("p", {}, finding.message),
    finding.hint === "" ? null : element("p", { class: "note" }, finding.hint),
  );
}
