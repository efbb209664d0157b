/** A line chart over the last minutes. */

import uPlot from "uplot";

import { element } from "./elements";
import { onThemeChange } from "./theme";

const HEIGHT = 170;
/** How much time a chart shows. */
export const CHART_S = 120;

/** One line of a chart; `colour` is a custom property of the page. */
export interface Line {
  label: string;
  colour: string;
}

/** A chart; its figures stand as text beside it. */
export class Chart {
  readonly view: HTMLElement;
  readonly #place = element("div", { class: "chart-place" });
  #plot: uPlot | null = null;
  #rows: uPlot.AlignedData;

  constructor(
    title: string,
    private readonly lines: readonly Line[],
    private readonly format: (value: number) => string,
  ) {
    this.#rows = [[], ...lines.map(() => [])];
    const label = `Chart of the last two minutes: ${title}`;
    const legend = lines.map(({ label: text, colour }) => {
      const mark = element("span", { class: "line-mark", "aria-hidden": "true" });
      mark.style.backgroundColor = `var(${colour})`;
      return element("li", {}, mark, text);
    });
    this.#place.setAttribute("role", "img");
    this.#place.setAttribute("aria-label", label);
    this.view = element(
      "figure",
      { class: "chart" },
      element("figcaption", {}, title),
      element("ul", { class: "line-legend" }, ...legend),
      this.#place,
    );
    onThemeChange(() => this.#redraw());
    new ResizeObserver(() => this.#resize()).observe(this.#place);
  }

  /** Show these values; `times` are seconds. */
  show(times: number[], values: (number | null)[][]): void {
    this.#rows = [times, ...values];
    if (this.#plot === null) {
      this.#redraw();
    } else {
      this.#plot.setData(this.#rows);
    }
  }

  #redraw(): void {
    this.#plot?.destroy();
    this.#plot = null;
    const width = this.#place.clientWidth;
    if (width > 0) {
      this.#plot = new uPlot(this.#options(width), this.#rows, this.#place);
    }
  }

  #resize(): void {
    const width = this.#place.clientWidth;
    if (width > 0 && this.#plot !== null && this.#plot.width !== width) {
      this.#plot.setSize({ width, height: HEIGHT });
    } else if (width > 0 && this.#plot === null) {
      this.#redraw();
    }
  }

  #options(width: number): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--quiet"),
      grid: { stroke: colour("--border"), width: 1 },
      ticks: { stroke: colour("--border") },
    };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { range: (_plot, _min, max) => [max - CHART_S, max] },
        y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.15 : 1] },
      },
      axes: [
        { ...axis, space: 80, size: 30, values: (_plot, ticks) => ticks.map(clockTime) },
        { ...axis, size: 64, values: (_plot, ticks) => ticks.map((tick) => this.format(tick)) },
      ],
      series: [
        {},
        ...this.lines.map(({ label, colour: name }) => ({
          label,
          stroke: colour(name),
          width: 2,
          spanGaps: true,
          points: { show: false },
        })),
      ],
    };
  }
}

function clockTime(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}
