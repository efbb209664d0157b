/** HTML elements made in one expression; texts are always text, never markup. */

type Child = Node | string | null | false;

/** Attributes by name; `true` sets an empty one, and functions listen to the event of the name. */
export type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

/** An element with attributes and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(key, value);
    } else if (value !== false) {
      made.setAttribute(key, value === true ? "" : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null && child !== false));
  return made;
}

/** The element of an id that stands in the page. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page lacks #${id}`);
  }
  return found as T;
}

/** A button with a text. */
export function button(
  text: string,
  press: () => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  return element("button", { type: "button", click: press, ...attributes }, text);
}

/** A button that copies what `read` gives, and says so. */
export function copyButton(read: () => string, what: string): HTMLButtonElement {
  const made = button("Copy", () => void copy(), { "aria-label": `Copy ${what}`, class: "quiet" });
  const say = (text: string, name: string): void => {
    made.textContent = text;
    made.setAttribute("aria-label", name);
  };
  const copy = async (): Promise<void> => {
    const words = (await tryCopy(read())) ? "Copied" : "Copying is not allowed";
    say(words, words);
    setTimeout(() => say("Copy", `Copy ${what}`), 2000);
  };
  return made;
}

/** False where the browser forbids it, as it does on pages without HTTPS. */
export async function tryCopy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
