/** An error on the page, in words. */

import { element } from "./elements";
import { findingList } from "./finding_list";
import { ProblemError } from "./service";

/** What went wrong, why, and what to do; errors of the page itself say that they are. */
export function problemView(error: unknown): HTMLElement {
  if (!(error instanceof ProblemError)) {
    const words = error instanceof Error ? error.message : String(error);
    return element(
      "div",
      { class: "problem" },
      element("h3", {}, "The page made an error"),
      element("p", {}, words),
    );
  }
  const { title, detail, status, code, remedy, findings } = error.problem;
  return element(
    "div",
    { class: "problem" },
    element("h3", {}, title),
    element("p", {}, `${detail} (${status === 0 ? code : `${status}, ${code}`})`),
    remedy !== undefined && remedy !== null ? element("p", {}, `What to do: ${remedy}`) : null,
    findings !== undefined && findings !== null ? findingList(findings) : null,
  );
}
