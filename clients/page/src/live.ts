/** The live view: figures of the running server, read every second. */

import { Chart, CHART_S } from "./chart";
import { button, element } from "./elements";
import { type Figures, figuresBetween, type Reading } from "./figures";
import { isKeyNeeded, type KeyDialog } from "./key_dialog";
import { problemView } from "./problem_view";
import { parseMetrics } from "./prometheus";
import { percent } from "./question";
import { ProblemError, type Service } from "./service";
import { duration } from "./time_line";

const PERIOD_MS = 1000;
/** How long figures look back. */
const WINDOW_S = 30;
const NOTHING = "none yet";

const FIGURES: [id: string, title: string, read: (figures: Figures) => string][] = [
  ["rate", "Edits a second", (of) => of.requestsPerSecond.toFixed(2)],
  ["p50", "Median time", (of) => orNothing(of.p50, duration)],
  ["p95", "95th percentile", (of) => orNothing(of.p95, duration)],
  ["passes", "Tokens a pass", (of) => orNothing(of.tokensPerPass, (value) => value.toFixed(1))],
  ["acceptance", "Drafts accepted", (of) => orNothing(of.acceptance, percent)],
  ["cache", "Prompt from the cache", (of) => orNothing(of.cacheHits, percent)],
  ["kv", "KV cache in use", (of) => percent(of.kvUse)],
  ["running", "Running and waiting", (of) => `${of.running} and ${of.waiting}`],
];

/** The view, in its panel; it reads the metrics only while it is shown. */
export class Live {
  readonly #readings: Reading[] = [];
  readonly #figures: { at_s: number; figures: Figures }[] = [];
  readonly #values = new Map<string, HTMLElement>();
  readonly #statuses = element("tbody");
  readonly #drafters = element("tbody");
  readonly #notice = element("div", { role: "status", class: "notice" });
  readonly #body = element("div", { class: "live-body" });
  readonly #rate = new Chart("Edits a second", [{ label: "edits", colour: "--chart-1" }], short);
  readonly #latency = new Chart(
    "Time of an edit",
    [
      { label: "median", colour: "--chart-1" },
      { label: "95th percentile", colour: "--chart-2" },
    ],
    duration,
  );
  readonly #passes = new Chart("Tokens a pass", [{ label: "tokens", colour: "--chart-3" }], short);
  readonly #shares = new Chart(
    "Shares",
    [
      { label: "KV cache in use", colour: "--chart-1" },
      { label: "prompt from the cache", colour: "--chart-2" },
      { label: "drafts accepted", colour: "--chart-3" },
    ],
    percent,
  );
  #timer: number | undefined;
  #turn = 0;
  #isShown = false;
  #isPaused = false;

  constructor(
    panel: HTMLElement,
    private readonly service: Service,
    private readonly keys: KeyDialog,
  ) {
    const pause = button("Pause", () => this.#togglePause(pause), { class: "quiet", id: "pause" });
    panel.append(
      element(
        "div",
        { class: "live-head" },
        element("h2", {}, "Live"),
        element(
          "p",
          { class: "note" },
          `Figures of the last ${WINDOW_S} seconds; charts of the last two minutes.`,
        ),
        pause,
      ),
      this.#notice,
      this.#body,
    );
    this.#body.append(
      element("dl", { class: "figures" }, ...FIGURES.map(([id, title]) => this.#figure(id, title))),
      element(
        "div",
        { class: "charts" },
        this.#rate.view,
        this.#latency.view,
        this.#passes.view,
        this.#shares.view,
      ),
      element(
        "div",
        { class: "columns" },
        table("How edits ended", ["Result", "Share"], this.#statuses),
        table(
          "Drafts that the model judged",
          ["Drafter", "Drafted", "Accepted", "Share"],
          this.#drafters,
        ),
      ),
    );
    document.addEventListener("visibilitychange", () => this.#restart());
  }

  /** Begin or stop to read. */
  setShown(isShown: boolean): void {
    this.#isShown = isShown;
    this.#restart();
  }

  /** Try again, since the key is another one. */
  retry(): void {
    this.#restart();
  }

  #figure(id: string, title: string): HTMLElement {
    const value = element("dd", { id: `figure-${id}` }, NOTHING);
    this.#values.set(id, value);
    return element("div", {}, element("dt", {}, title), value);
  }

  #togglePause(pause: HTMLButtonElement): void {
    this.#isPaused = !this.#isPaused;
    pause.textContent = this.#isPaused ? "Go on" : "Pause";
    this.#restart();
  }

  /** Begin anew: what happened while nobody looked is no part of the last seconds. */
  #restart(): void {
    clearTimeout(this.#timer);
    this.#readings.length = 0;
    this.#turn += 1;
    if (this.#isShown && !this.#isPaused && !document.hidden) {
      void this.#read();
    }
  }

  async #read(): Promise<void> {
    const began = performance.now();
    const turn = ++this.#turn;
    try {
      const text = await this.service.metrics();
      this.#add({ at_s: Date.now() / 1000, samples: parseMetrics(text) });
      this.#notice.replaceChildren();
      this.#body.hidden = false;
    } catch (error) {
      this.#refused(error);
      if (error instanceof ProblemError && [401, 403].includes(error.problem.status)) {
        return; // until there is another key
      }
    }
    if (turn === this.#turn) {
      this.#timer = window.setTimeout(
        () => void this.#read(),
        Math.max(0, PERIOD_MS - (performance.now() - began)),
      );
    }
  }

  #refused(error: unknown): void {
    this.#body.hidden = true;
    const isForbidden = error instanceof ProblemError && error.problem.status === 403;
    const view = problemView(error);
    if (isForbidden) {
      view.append(
        element("p", {}, "The live view reads the metrics, which need a key with the scope admin."),
      );
    }
    if (isForbidden || isKeyNeeded(error)) {
      view.append(
        button(
          "Use another key",
          () => this.keys.open("The live view needs a key with the scope admin."),
          { class: "primary" },
        ),
      );
    }
    this.#notice.replaceChildren(view);
  }

  #add(reading: Reading): void {
    this.#readings.push(reading);
    const oldest = reading.at_s - WINDOW_S;
    while (this.#readings.length > 2 && (this.#readings[1] as Reading).at_s <= oldest) {
      this.#readings.shift();
    }
    const figures = figuresBetween(this.#readings[0] as Reading, reading);
    this.#figures.push({ at_s: reading.at_s, figures });
    while ((this.#figures[0]?.at_s ?? Infinity) < reading.at_s - CHART_S) {
      this.#figures.shift();
    }
    this.#show(figures);
  }

  #show(figures: Figures): void {
    for (const [id, , read] of FIGURES) {
      (this.#values.get(id) as HTMLElement).textContent = read(figures);
    }
    fill(
      this.#statuses,
      figures.statusShares.map(([status, share]) => [status, percent(share)]),
      2,
    );
    const drafters = figures.drafters.map(({ drafter, drafted, accepted }) => [
      drafter,
      String(drafted),
      String(accepted),
      percent(accepted / drafted),
    ]);
    fill(this.#drafters, drafters, 4);
    const times = this.#figures.map(({ at_s }) => at_s);
    const values = (read: (of: Figures) => number | null): (number | null)[] =>
      this.#figures.map((one) => read(one.figures));
    this.#rate.show(times, [values((of) => of.requestsPerSecond)]);
    this.#latency.show(times, [values((of) => of.p50), values((of) => of.p95)]);
    this.#passes.show(times, [values((of) => of.tokensPerPass)]);
    this.#shares.show(times, [
      values((of) => of.kvUse),
      values((of) => of.cacheHits),
      values((of) => of.acceptance),
    ]);
  }
}

function short(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0);
}

function orNothing(value: number | null, format: (value: number) => string): string {
  return value === null ? NOTHING : format(value);
}

function table(caption: string, heads: readonly string[], body: HTMLElement): HTMLElement {
  const cells = heads.map((head) => element("th", { scope: "col" }, head));
  return element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...cells)),
    body,
  );
}

function fill(body: HTMLElement, rows: readonly string[][], width: number): void {
  const shown = rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  body.replaceChildren(
    ...(shown.length > 0 ? shown : [element("tr", {}, element("td", { colspan: width }, NOTHING))]),
  );
}
