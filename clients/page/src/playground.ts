/** The playground: a file and an update in, a diff with its verdict out. */

import type { ApplyBody, Choice } from "apply-client";

import { TextEditor } from "./editor";
import { button, element } from "./elements";
import { type Example, EXAMPLES, type Mode } from "./examples";
import type { KeyDialog } from "./key_dialog";
import { problemView } from "./problem_view";
import { ResultView } from "./result_view";
import { ProblemError, type Service } from "./service";

const MODES: Record<Mode, string> = {
  auto: "Where the merge is not certain",
  always: "Always, bound to the valid merges",
  free: "Always, free to write",
  never: "Never",
};
const OPTIONS: Record<Mode, Partial<ApplyBody>> = {
  auto: { use_model: "auto", include: ["trace"] },
  always: { use_model: "always", constraint: "merge", include: ["trace"] },
  free: { use_model: "always", constraint: "none", include: ["trace"] },
  never: { use_model: "never" },
};

/** The view, in its panel. */
export class Playground {
  readonly #path = element("input", {
    id: "path",
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
  });
  readonly #mode = element("select", { id: "use-model" });
  readonly #apply = element(
    "button",
    { type: "submit", class: "primary", "aria-keyshortcuts": "Control+Enter" },
    "Apply",
  );
  readonly #progress = element("p", { role: "status", class: "progress" });
  readonly #original: TextEditor;
  readonly #update: TextEditor;
  readonly #result: ResultView;
  /** The edit that was asked last, which a choice belongs to. */
  #asked: ApplyBody | null = null;
  #turn = 0;

  constructor(
    panel: HTMLElement,
    private readonly service: Service,
    private readonly keys: KeyDialog,
  ) {
    for (const [value, text] of Object.entries(MODES)) {
      this.#mode.append(element("option", { value }, text));
    }
    const original = element("div", { class: "editor" });
    const update = element("div", { class: "editor" });
    const results = element("section", { id: "result", "aria-label": "Result", tabindex: -1 });
    panel.append(
      element("h2", { class: "visually-hidden" }, "Playground"),
      this.#exampleList(),
      this.#form(original, update),
      results,
    );
    this.#original = new TextEditor(original, "The file");
    this.#update = new TextEditor(update, "The update");
    this.#result = new ResultView(results, {
      resolve: (choice) => void this.#resolve(choice),
      takeAsFile: (text) => this.#takeAsFile(text),
    });
    this.#path.addEventListener("change", () => {
      this.#original.speak(this.#path.value);
      this.#update.speak(this.#path.value);
    });
    this.#load(EXAMPLES[0] as Example);
  }

  #exampleList(): HTMLElement {
    const buttons = EXAMPLES.map((example) =>
      button(example.name, () => this.#load(example), { class: "quiet" }),
    );
    return element(
      "div",
      { class: "examples", role: "group", "aria-label": "Examples" },
      element("span", {}, "Examples:"),
      ...buttons,
    );
  }

  #form(original: HTMLElement, update: HTMLElement): HTMLElement {
    const form = element(
      "form",
      { class: "edit", submit: (event) => this.#submit(event) },
      element(
        "div",
        { class: "inputs" },
        labelled("The file", original),
        labelled("The update", update),
      ),
      element(
        "div",
        { class: "options" },
        element("label", { for: "path" }, "File name"),
        this.#path,
        element("label", { for: "use-model" }, "Ask the model"),
        this.#mode,
        this.#apply,
        this.#progress,
      ),
    );
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    return form;
  }

  #load({ path, original, update, mode }: Example): void {
    this.#turn += 1;
    this.#apply.disabled = false;
    this.#path.value = path;
    this.#mode.value = mode;
    this.#original.show(original, path);
    this.#update.show(update, path);
    this.#result.clear();
    this.#progress.textContent = "";
  }

  #takeAsFile(text: string): void {
    this.#original.show(text, this.#path.value);
    this.#update.show("", this.#path.value);
    this.#result.clear();
    this.#progress.textContent = "The result is the file now; write the next update.";
  }

  #submit(event: Event): void {
    event.preventDefault();
    const path = this.#path.value.trim();
    const edit: ApplyBody = {
      original: this.#original.text,
      update: this.#update.text,
      ...OPTIONS[this.#mode.value as Mode],
      on_doubt: "ask",
      ...(path === "" ? {} : { path }),
    };
    void this.#ask(edit);
  }

  async #resolve(choice: Choice): Promise<void> {
    if (this.#asked !== null) {
      const { include: _nothingIsDecoded, ...edit } = this.#asked;
      await this.#ask({ ...edit, resolve: choice.id });
    }
  }

  /** Ask for an edit and show the answer, unless another one was asked for in the meantime. */
  async #ask(edit: ApplyBody): Promise<void> {
    const turn = ++this.#turn;
    this.#asked = edit;
    this.#progress.textContent = "Working…";
    this.#apply.disabled = true;
    try {
      const answer = await this.keys.withKey(() => this.service.apply(edit));
      if (turn === this.#turn) {
        this.#result.show(answer, { path: edit.path ?? "", original: edit.original as string });
        this.#progress.textContent = `Done: ${answer.status.replace("_", " ")}.`;
      }
    } catch (error) {
      if (turn === this.#turn) {
        const choices = error instanceof ProblemError ? (error.problem.choices ?? []) : [];
        this.#result.showOther(problemView(error), choices);
        this.#progress.textContent =
          error instanceof ProblemError ? error.problem.title : "The page made an error.";
      }
    } finally {
      if (turn === this.#turn) {
        this.#apply.disabled = false;
      }
    }
  }
}

function labelled(title: string, editor: HTMLElement): HTMLElement {
  return element("div", { class: "field" }, element("h3", {}, title), editor);
}
