/** The view with a snippet for each client. */

import { copyButton, element } from "./elements";
import { type Snippet, snippetsFor } from "./snippets";

/** Fill the panel for a server at this address. */
export function showConnect(
  panel: HTMLElement,
  address: string,
  { needsKey }: { needsKey: boolean },
): void {
  const snippets = snippetsFor(address, { needsKey });
  const links = snippets.map(({ id, title }) => element("li", {}, jumpButton(id, title)));
  panel.replaceChildren(
    element("h2", {}, "Connect"),
    element(
      "p",
      {},
      "This server is at ",
      element("code", {}, address.replace(/\/$/, "")),
      needsKey ? ". It needs a key." : ". It needs no key.",
    ),
    element("nav", { "aria-label": "Clients" }, element("ul", { class: "jumps" }, ...links)),
    ...snippets.map(snippetView),
  );
}

/** No link: the part behind `#` names the open tab. */
function jumpButton(id: string, title: string): HTMLElement {
  const jump = (): void => {
    const head = document.getElementById(`connect-${id}`);
    head?.scrollIntoView({ block: "start" });
    head?.focus({ preventScroll: true });
  };
  return element("button", { type: "button", class: "quiet", click: jump }, title);
}

function snippetView({ id, title, note, code }: Snippet): HTMLElement {
  return element(
    "section",
    { class: "snippet", "aria-labelledby": `connect-${id}` },
    element(
      "div",
      { class: "snippet-head" },
      element("h3", { id: `connect-${id}`, tabindex: -1 }, title),
      copyButton(() => code, `the snippet for ${title}`),
    ),
    element("p", { class: "note" }, note),
    element(
      "pre",
      { tabindex: 0, role: "region", "aria-label": `Snippet for ${title}` },
      element("code", {}, code),
    ),
  );
}
