/** What Swagger UI leaves out for people with a keyboard or a screen reader. */

const NAMES: [selector: string, name: string][] = [
  ["select#servers", "Server"],
  ["select.content-type, .content-type-wrapper select", "Media type"],
  ["textarea.body-param__text", "Request body"],
];

/** Add it now and after every change below the element. */
export function keepAccessible(root: HTMLElement): void {
  new MutationObserver(() => repair(root)).observe(root, { childList: true, subtree: true });
}

function repair(root: HTMLElement): void {
  for (const [selector, name] of NAMES) {
    for (const found of root.querySelectorAll(`:is(${selector}):not([aria-label])`)) {
      found.setAttribute("aria-label", name);
    }
  }
  for (const block of root.querySelectorAll("pre:not([tabindex])")) {
    block.setAttribute("tabindex", "0");
  }
}
