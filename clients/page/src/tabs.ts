/** The tabs of the page; the address remembers the open one. */

const KEYS: Record<string, (index: number, count: number) => number> = {
  ArrowLeft: (index, count) => (index + count - 1) % count,
  ArrowRight: (index, count) => (index + 1) % count,
  Home: () => 0,
  End: (_index, count) => count - 1,
};

/** Bind a list of tabs; `onShow` is told the id of the panel that is shown. */
export function startTabs(list: HTMLElement, onShow: (panel: string) => void): void {
  const tabs = [...list.querySelectorAll<HTMLElement>('[role="tab"]')];
  const panelOf = (tab: HTMLElement): string => tab.getAttribute("aria-controls") ?? "";

  const show = (shown: HTMLElement): void => {
    for (const tab of tabs) {
      const isShown = tab === shown;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      document.getElementById(panelOf(tab))?.toggleAttribute("hidden", !isShown);
    }
    onShow(panelOf(shown));
  };
  const showHash = (): void => {
    const wanted = tabs.find((tab) => `#${panelOf(tab)}` === location.hash) ?? tabs[0];
    if (wanted !== undefined) {
      show(wanted);
    }
  };

  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => {
      history.replaceState(null, "", `#${panelOf(tab)}`);
      show(tab);
    });
    tab.addEventListener("keydown", (event) => {
      const next = tabs[KEYS[event.key]?.(index, tabs.length) ?? -1];
      if (next !== undefined) {
        event.preventDefault();
        next.focus();
        next.click();
      }
    });
  });
  addEventListener("hashchange", showHash);
  showHash();
}
