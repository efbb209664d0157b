/** Text editors with the page's colours. */

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

// The document has it as a property alone: browsers hide the attribute from scripts.
const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";

const COLOURS = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--panel)", fontSize: "0.84rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": {
    backgroundColor: "var(--ground)",
    color: "var(--quiet)",
    borderColor: "var(--border)",
  },
  ".cm-activeLine": { backgroundColor: "var(--active-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    {
      backgroundColor: "var(--selection)",
    },
});

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  {
    tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.className],
    color: "var(--code-name)",
  },
]);

/** What every editor of the page has. */
export function appearance(label: string): Extension {
  return [
    EditorView.cspNonce.of(nonce),
    COLOURS,
    syntaxHighlighting(HIGHLIGHT),
    lineNumbers(),
    drawSelection(),
    // Focusable in any case; the attribute says so to tools that do not know of editable elements.
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  ];
}

/**
 * Text typed over a selection goes in without the browser's help: Chromium would keep the old text's
 * look in a `style` attribute, which the content security policy forbids.
 */
const TYPES_OVER_SELECTION = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (
      event.inputType !== "insertText" ||
      event.data === null ||
      view.state.selection.main.empty
    ) {
      return false;
    }
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(event.data), {
      userEvent: "input.type",
      scrollIntoView: true,
    });
    return true;
  },
});

/** The language of a file, by its name. */
export function languageOf(path: string): Extension {
  const ending = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  if (["py", "pyi"].includes(ending)) {
    return python();
  }
  if (["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"].includes(ending)) {
    return javascript({ jsx: ending.endsWith("x"), typescript: ending.includes("ts") });
  }
  return ending === "json" ? json() : [];
}

/** An editor for a text; Escape then Tab leaves it, as Tab alone does. */
export class TextEditor {
  readonly #language = new Compartment();
  readonly #view: EditorView;

  constructor(parent: HTMLElement, label: string) {
    const extensions = [
      appearance(label),
      history(),
      bracketMatching(),
      highlightActiveLine(),
      TYPES_OVER_SELECTION,
      keymap.of([...defaultKeymap.filter(({ key }) => key !== "Mod-Enter"), ...historyKeymap]),
      this.#language.of([]),
    ];
    this.#view = new EditorView({ parent, state: EditorState.create({ extensions }) });
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  /** Put another text in, in the language of a file of this name. */
  show(text: string, path: string): void {
    const changes = { from: 0, to: this.#view.state.doc.length, insert: text };
    this.#view.dispatch({ changes, effects: this.#language.reconfigure(languageOf(path)) });
  }

  /** Read the text as that of a file of another name. */
  speak(path: string): void {
    this.#view.dispatch({ effects: this.#language.reconfigure(languageOf(path)) });
  }
}
