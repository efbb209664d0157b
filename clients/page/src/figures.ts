/** What happened between two readings of the metrics. */

import { byLabel, type Samples, total } from "./prometheus";

/** The metrics of one moment, in seconds of any clock. */
export interface Reading {
  at_s: number;
  samples: Samples;
}

/** Figures of the time between two readings; null where nothing happened to measure. */
export interface Figures {
  requestsPerSecond: number;
  statusShares: [status: string, share: number][];
  p50: number | null;
  p95: number | null;
  tokensPerPass: number | null;
  acceptance: number | null;
  /** What was drafted, by what it was copied from; the busiest first. */
  drafters: { drafter: string; drafted: number; accepted: number }[];
  cacheHits: number | null;
  kvUse: number;
  running: number;
  waiting: number;
}

/** The figures of the later reading's moment, and of the time since the earlier one. */
export function figuresBetween(earlier: Reading, later: Reading): Figures {
  const seconds = later.at_s - earlier.at_s;
  const grown = (name: string): number =>
    growth(total(earlier.samples, name), total(later.samples, name));
  const share = (part: string, whole: string): number | null => ratio(grown(part), grown(whole));
  const latencies = bucketGrowth(
    earlier.samples,
    later.samples,
    "apply_e2e_request_latency_seconds",
  );
  return {
    requestsPerSecond: seconds > 0 ? grown("apply_requests_total") / seconds : 0,
    statusShares: statusShares(earlier.samples, later.samples),
    p50: quantile(latencies, 0.5),
    p95: quantile(latencies, 0.95),
    tokensPerPass: share("apply_tokens_per_target_pass_sum", "apply_tokens_per_target_pass_count"),
    acceptance: share(
      "apply_spec_decode_num_accepted_tokens_total",
      "apply_spec_decode_num_draft_tokens_total",
    ),
    drafters: drafters(earlier.samples, later.samples),
    cacheHits: share("apply_prefix_cache_hits_total", "apply_prefix_cache_queries_total"),
    kvUse: total(later.samples, "apply_kv_cache_usage_perc"),
    running: total(later.samples, "apply_num_requests_running"),
    waiting: total(later.samples, "apply_num_requests_waiting"),
  };
}

/** One bucket of a histogram: how many values were at most `limit` and above the one before. */
export interface Bucket {
  limit: number;
  count: number;
}

/** A quantile as Prometheus estimates it: values are spread evenly in their bucket. */
export function quantile(buckets: readonly Bucket[], share: number): number | null {
  const count = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  if (count === 0) {
    return null;
  }
  let below = 0;
  let floor = 0;
  for (const bucket of buckets) {
    if (bucket.count > 0 && below + bucket.count >= share * count) {
      // Nothing is known of the last bucket but where it begins.
      const width = Number.isFinite(bucket.limit) ? bucket.limit - floor : 0;
      return floor + (width * (share * count - below)) / bucket.count;
    }
    below += bucket.count;
    floor = Number.isFinite(bucket.limit) ? bucket.limit : floor;
  }
  return floor;
}

/** How a histogram's buckets grew, each without those below it. */
export function bucketGrowth(earlier: Samples, later: Samples, name: string): Bucket[] {
  const before = byLabel(earlier, `${name}_bucket`, "le");
  const grown = [...byLabel(later, `${name}_bucket`, "le")]
    .map(([le, count]) => ({
      limit: le === "+Inf" ? Infinity : Number(le),
      count: growth(before.get(le) ?? 0, count),
    }))
    .sort((one, other) => one.limit - other.limit);
  return grown.map(({ limit, count }, index) => ({
    limit,
    count: Math.max(0, count - (grown[index - 1]?.count ?? 0)),
  }));
}

function statusShares(earlier: Samples, later: Samples): [string, number][] {
  const counts = growthBy(earlier, later, "apply_requests_total", "result");
  const sum = counts.reduce((whole, [, count]) => whole + count, 0);
  return counts
    .map(([status, count]): [string, number] => [status, count / sum])
    .sort(([, one], [, other]) => other - one);
}

function drafters(earlier: Samples, later: Samples): Figures["drafters"] {
  const accepted = new Map(
    growthBy(earlier, later, "apply_drafter_accepted_tokens_total", "drafter"),
  );
  return growthBy(earlier, later, "apply_drafter_drafted_tokens_total", "drafter")
    .map(([drafter, drafted]) => ({ drafter, drafted, accepted: accepted.get(drafter) ?? 0 }))
    .sort((one, other) => other.drafted - one.drafted);
}

/** How far a counter grew for each value of a label; without those that did not. */
function growthBy(
  earlier: Samples,
  later: Samples,
  name: string,
  label: string,
): [value: string, count: number][] {
  const before = byLabel(earlier, name, label);
  return [...byLabel(later, name, label)]
    .map(([value, count]): [string, number] => [value, growth(before.get(value) ?? 0, count)])
    .filter(([, count]) => count > 0);
}

/** How far a counter grew; one that is smaller than before began anew with the server. */
function growth(before: number, after: number): number {
  return after >= before ? after - before : after;
}

function ratio(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}
