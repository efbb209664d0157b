/** Reads the text format of Prometheus. */

/** One figure with its labels. */
export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** All figures of one moment, by name. */
export type Samples = Map<string, Sample[]>;

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Record<string, string> = { n: "\n", '"': '"', "\\": "\\" };

/** The samples of a text; lines that are none are left out. */
export function parseMetrics(text: string): Samples {
  const samples: Samples = new Map();
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : LINE.exec(line);
    if (match === null) {
      continue;
    }
    const [, name = "", labels = "", value = ""] = match;
    const sample = { labels: parseLabels(labels), value: parseNumber(value) };
    const known = samples.get(name);
    if (known === undefined) {
      samples.set(name, [sample]);
    } else {
      known.push(sample);
    }
  }
  return samples;
}

/** The sum of a metric over all its labels; 0 if there is none. */
export function total(samples: Samples, name: string): number {
  return (samples.get(name) ?? []).reduce((sum, { value }) => sum + value, 0);
}

/** A metric summed by the values of one label. */
export function byLabel(samples: Samples, name: string, label: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { labels, value } of samples.get(name) ?? []) {
    const key = labels[label] ?? "";
    sums.set(key, (sums.get(key) ?? 0) + value);
  }
  return sums;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(LABEL)) {
    labels[name] = value.replace(/\\(.)/g, (_whole, sign: string) => ESCAPES[sign] ?? sign);
  }
  return labels;
}

function parseNumber(text: string): number {
  if (text === "+Inf") {
    return Infinity;
  }
  return text === "-Inf" ? -Infinity : Number(text);
}
