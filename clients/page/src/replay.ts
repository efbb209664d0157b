/** Replays how an answer was decoded, step by step. */

import type { RegionTrace } from "apply-client";

import { button, element } from "./elements";
import { countTokens, describeFrame, type Frame, framesOf } from "./trace";

const FRAME_MS = 350;
const LEGEND = {
  forced: "Forced: only one token was allowed",
  drafted: "Drafted, and accepted by the model",
  rejected: "Drafted, and rejected",
  written: "Written by the model",
} as const;

/** The panel of a replay, at its end when it is made. */
export class Replay {
  readonly view: HTMLElement;
  readonly #frames: Frame[];
  readonly #output = element("pre", {
    class: "tokens",
    tabindex: 0,
    role: "region",
    "aria-label": "Text up to this step",
  });
  readonly #words = element("p", { class: "replay-words", "aria-live": "polite" });
  readonly #counts = element("p", { class: "note" });
  readonly #slider: HTMLInputElement;
  readonly #play: HTMLButtonElement;
  #timer: number | undefined;

  constructor(trace: readonly RegionTrace[]) {
    this.#frames = framesOf(trace);
    this.#slider = element("input", {
      type: "range",
      id: "replay-step",
      min: 0,
      max: this.#frames.length,
      value: this.#frames.length,
      input: () => this.#pauseAt(this.#slider.valueAsNumber),
    });
    this.#play = button("Play", () => this.#toggle(), { class: "primary" });
    const legend = Object.entries(LEGEND).map(([origin, text]) =>
      element("li", {}, element("span", { class: `token ${origin}` }, "token"), ` ${text}`),
    );
    this.view = element(
      "section",
      { class: "replay", "aria-labelledby": "replay-title" },
      element("h3", { id: "replay-title" }, "Decoding"),
      element("ul", { class: "token-legend" }, ...legend),
      element(
        "div",
        { class: "replay-controls" },
        this.#play,
        button("Step back", () => this.#pauseAt(this.#slider.valueAsNumber - 1)),
        button("Step on", () => this.#pauseAt(this.#slider.valueAsNumber + 1)),
        element("label", { for: "replay-step" }, "Step"),
        this.#slider,
      ),
      this.#words,
      this.#counts,
      this.#output,
    );
    this.#show(this.#frames.length);
  }

  /** Stop the clock; a replay that is taken from the page needs it. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#play.textContent = "Play";
  }

  #toggle(): void {
    if (this.#timer !== undefined) {
      this.stop();
      return;
    }
    this.#play.textContent = "Pause";
    this.#show(this.#slider.valueAsNumber >= this.#frames.length ? 0 : this.#slider.valueAsNumber);
    this.#timer = window.setInterval(() => {
      this.#show(this.#slider.valueAsNumber + 1);
      if (this.#slider.valueAsNumber >= this.#frames.length) {
        this.stop();
      }
    }, FRAME_MS);
  }

  #pauseAt(count: number): void {
    this.stop();
    this.#show(count);
  }

  /** Show the text after so many frames. */
  #show(count: number): void {
    const bounded = Math.max(0, Math.min(this.#frames.length, count));
    const shown = this.#frames.slice(0, bounded);
    const words = describeFrame(this.#frames, bounded - 1);
    this.#slider.value = String(bounded);
    this.#slider.setAttribute("aria-valuetext", words);
    this.#words.textContent = words;
    const { forced, drafted, written, rejected } = countTokens(shown);
    this.#counts.textContent = `So far: ${forced} forced, ${drafted} drafted, ${written} written, ${rejected} rejected.`;
    const regions = [...new Set(this.#frames.map(({ region }) => region))].sort(
      (one, other) => one - other,
    );
    this.#output.replaceChildren(
      ...regions.flatMap((region) => regionView(region, shown, { isOnly: regions.length === 1 })),
    );
  }
}

function regionView(
  region: number,
  shown: readonly Frame[],
  { isOnly }: { isOnly: boolean },
): Node[] {
  const title = isOnly
    ? []
    : [element("span", { class: "region-title" }, `Region ${region + 1}\n`)];
  const pieces = shown.flatMap((frame, index) =>
    frame.region === region ? stepView(frame, index === shown.length - 1) : [],
  );
  return [...title, ...pieces, document.createTextNode(isOnly ? "" : "\n")];
}

/** A step's tokens; what was rejected is shown in the last step alone, since it is not in the text. */
function stepView({ step }: Frame, isLast: boolean): HTMLElement[] {
  const now = isLast ? " now" : "";
  const tokens = step.tokens.map((token) =>
    element("span", { class: `token ${token.origin}${now}`, title: token.origin }, token.text),
  );
  const rejected = isLast
    ? step.rejected.map((text) => element("del", { class: "token rejected now" }, text))
    : [];
  // The model's own token stands in the place of the first rejected one.
  const written = tokens.findIndex((_token, index) => step.tokens[index]?.origin === "written");
  const place = written < 0 ? tokens.length : written;
  return [...tokens.slice(0, place), ...rejected, ...tokens.slice(place)];
}
