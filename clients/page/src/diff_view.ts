/** A file before and after its edit, side by side, with findings in the margin. */

import { MergeView, uncollapseUnchanged, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension, RangeSet } from "@codemirror/state";
import { EditorView, gutter, GutterMarker } from "@codemirror/view";
import type { Finding } from "apply-client";

import { appearance, languageOf } from "./editor";
import { element } from "./elements";

const FIXED: Extension = [EditorState.readOnly.of(true), EditorView.lineWrapping];
const FOLD = { margin: 3, minSize: 8 };
// Two columns of code need so much.
const isWide = matchMedia("(min-width: 760px)");

const COLOURS = EditorView.theme({
  ".cm-finding-gutter": { width: "1.4em", cursor: "help" },
  ".cm-finding": { color: "var(--warning)", fontWeight: "700" },
  ".cm-finding.error": { color: "var(--error)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--removed-line)" },
  "&.cm-merge-b .cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--added-line)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "var(--removed)",
  },
  "&.cm-merge-b .cm-changedText": { background: "var(--added)" },
  ".cm-collapsedLines": { background: "var(--ground)", color: "var(--quiet)" },
  // The signs of the library are in few fonts.
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"⋯"' },
});

/** What there is to show. */
export interface Change {
  path: string;
  before: string;
  after: string;
  findings: readonly Finding[];
}

/** Shows one change at a time. */
export class DiffView {
  #change: Change | null = null;
  #after: EditorView | null = null;
  #destroy = (): void => {};

  readonly #redraw = (): void => this.#draw();

  constructor(private readonly parent: HTMLElement) {
    isWide.addEventListener("change", this.#redraw);
  }

  /** Let go of the page. */
  destroy(): void {
    isWide.removeEventListener("change", this.#redraw);
    this.#destroy();
  }

  show(change: Change | null): void {
    this.#change = change;
    this.#draw();
  }

  /** Scroll to a line of the result and put the cursor there. */
  goTo(line: number): void {
    const view = this.#after;
    if (view === null || line < 1 || line > view.state.doc.lines) {
      return;
    }
    const { from } = view.state.doc.line(line);
    view.dispatch({
      selection: { anchor: from },
      effects: [
        uncollapseUnchanged.of(from), // the line may stand in a folded part
        EditorView.scrollIntoView(from, { y: "center" }),
      ],
    });
    view.focus();
  }

  #draw(): void {
    this.#destroy();
    this.#destroy = () => {};
    this.#after = null;
    this.parent.replaceChildren();
    if (this.#change === null) {
      return;
    }
    const { path, before, after, findings } = this.#change;
    const shared = [FIXED, COLOURS, languageOf(path)];
    const margin = findingMargin(findings);
    if (isWide.matches) {
      const view = new MergeView({
        parent: this.parent,
        a: { doc: before, extensions: [appearance("The file before the edit"), ...shared] },
        b: { doc: after, extensions: [margin, appearance("The file after the edit"), ...shared] },
        collapseUnchanged: FOLD,
        gutter: true,
      });
      this.#after = view.b;
      this.#destroy = () => view.destroy();
      return;
    }
    const unified = unifiedMergeView({
      original: before,
      mergeControls: false,
      collapseUnchanged: FOLD,
    });
    const extensions = [
      margin,
      appearance("The file after the edit, with removed lines"),
      ...shared,
      unified,
    ];
    const view = new EditorView({ parent: this.parent, doc: after, extensions });
    this.#after = view;
    this.#destroy = () => view.destroy();
  }
}

class FindingMarker extends GutterMarker {
  constructor(private readonly findings: readonly Finding[]) {
    super();
  }

  override toDOM(): HTMLElement {
    const severity = this.findings.some((one) => one.severity === "error") ? "error" : "warning";
    const words = this.findings.map((one) => `${one.severity}: ${one.message}`).join("\n");
    const attributes = {
      class: `cm-finding ${severity}`,
      title: words,
      role: "img",
      "aria-label": words,
    };
    return element("span", attributes, severity === "error" ? "✖" : "▲");
  }
}

function findingMargin(findings: readonly Finding[]): Extension {
  const byLine = grouped(placed(findings));
  return gutter({
    class: "cm-finding-gutter",
    markers: (view) => {
      const lines = [...byLine].filter(([line]) => line >= 1 && line <= view.state.doc.lines);
      lines.sort(([one], [other]) => one - other);
      return RangeSet.of(
        lines.map(([line, of]) => new FindingMarker(of).range(view.state.doc.line(line).from)),
      );
    },
  });
}

type Placed = Finding & { line: number };

function placed(findings: readonly Finding[]): Placed[] {
  return findings.filter((one): one is Placed => typeof one.line === "number");
}

function grouped(findings: readonly Placed[]): Map<number, Placed[]> {
  const byLine = new Map<number, Placed[]>();
  for (const one of findings) {
    byLine.set(one.line, [...(byLine.get(one.line) ?? []), one]);
  }
  return byLine;
}
