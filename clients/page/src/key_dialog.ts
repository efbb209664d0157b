/** Asks for the API key, on demand and when the service answers that it needs one. */

import { button, byId, element } from "./elements";
import { keepKey, readKey } from "./key_store";
import { ProblemError } from "./service";

/** What a header can carry: ASCII without blanks. */
const SENDABLE = /^[!-~]*$/;

/** The dialog for the key; there is one in the page. */
export class KeyDialog {
  readonly #dialog = byId<HTMLDialogElement>("key-dialog");
  readonly #input = element("input", {
    id: "key-input",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "key-why key-note",
    input: () => this.#input.setCustomValidity(""),
  });
  readonly #why = element("p", { id: "key-why" });
  #waiting: ((hasKey: boolean) => void)[] = [];

  /** `onChange` is told of a change of the key for which no call waits. */
  constructor(private readonly onChange: () => void) {
    const form = element(
      "form",
      { method: "dialog", submit: (event) => this.#submit(event) },
      element("h2", { id: "key-title" }, "API key"),
      this.#why,
      element("label", { for: "key-input" }, "Key"),
      this.#input,
      element(
        "p",
        { id: "key-note", class: "note" },
        "The key stays in this tab, for as long as the browser keeps the tab.",
      ),
      element(
        "div",
        { class: "actions" },
        element("button", { type: "submit", class: "primary" }, "Use the key"),
        button("Forget the key", () => this.#use("")),
        button("Cancel", () => this.#dialog.close()),
      ),
    );
    this.#dialog.append(form);
    this.#dialog.addEventListener("close", () => this.#answer(false));
    byId("key").addEventListener("click", () =>
      this.open("Requests are sent with this key. A server without keys needs none."),
    );
  }

  /** Show the dialog with the reason for it. */
  open(why: string): void {
    this.#why.textContent = why;
    this.#input.value = readKey() ?? "";
    if (!this.#dialog.open) {
      this.#dialog.showModal();
    }
    this.#input.select();
  }

  /** What `call` gives; where the service wants a key, it is asked for, and the call made again. */
  async withKey<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!isKeyNeeded(error) || !(await this.#ask(error.problem.detail))) {
          throw error;
        }
      }
    }
  }

  #ask(detail: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.open(
        `The server says: ${detail}. Whoever runs it makes keys with "apply-service key create".`,
      );
    });
  }

  #submit(event: Event): void {
    event.preventDefault();
    const key = this.#input.value.trim();
    this.#input.setCustomValidity(SENDABLE.test(key) ? "" : "A key has letters, digits and signs.");
    if (this.#input.reportValidity()) {
      this.#use(key);
    }
  }

  #use(key: string): void {
    keepKey(key);
    const isAwaited = this.#waiting.length > 0;
    this.#answer(key !== "");
    this.#dialog.close();
    if (!isAwaited) {
      this.onChange();
    }
  }

  #answer(hasKey: boolean): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) {
      resolve(hasKey);
    }
  }
}

export function isKeyNeeded(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.problem.status === 401;
}
