/** What of the page needs no browser: metrics, figures, traces, snippets, addresses, times. */

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { build } from "esbuild";

const outdir = mkdtempSync(join(tmpdir(), "page-units-"));
const names = [
  "prometheus",
  "figures",
  "trace",
  "snippets",
  "address",
  "time_line",
  "examples",
];
const entryPoints = names.map((name) => new URL(`../src/${name}.ts`, import.meta.url).pathname);
await build({ entryPoints, outdir, bundle: true, format: "esm", outExtension: { ".js": ".mjs" } });
const load = (name) => import(join(outdir, `${name}.mjs`));
const { parseMetrics, total, byLabel } = await load("prometheus");
const { figuresBetween, quantile, bucketGrowth } = await load("figures");
const { framesOf, countTokens, describeFrame } = await load("trace");
const { snippetsFor } = await load("snippets");
const { serviceAddress } = await load("address");
const { timeParts, duration } = await load("time_line");
const { EXAMPLES } = await load("examples");

test("metrics are read with labels, escapes and infinities", () => {
  const samples = parseMetrics(
    [
      "# HELP a_total Words.",
      "# TYPE a_total counter",
      'a_total{result="applied"} 3.0',
      'a_total{result="with \\"quotes\\", \\\\ and \\n"} 1e2',
      'h_bucket{le="+Inf"} 7 1700000000000',
      "b -Inf",
      "c +Inf",
      "no sample",
      "",
    ].join("\n"),
  );
  assert.equal(total(samples, "a_total"), 103);
  assert.deepEqual(
    [...byLabel(samples, "a_total", "result")],
    [
      ["applied", 3],
      ['with "quotes", \\ and \n', 100],
    ],
  );
  assert.equal(samples.get("h_bucket")[0].value, 7);
  assert.equal(total(samples, "b"), -Infinity);
  assert.equal(total(samples, "c"), Infinity);
  assert.equal(total(samples, "missing"), 0);
});

test("a quantile lies in its bucket, evenly spread", () => {
  const buckets = [
    { limit: 1, count: 10 },
    { limit: 2, count: 0 },
    { limit: 4, count: 10 },
    { limit: Infinity, count: 0 },
  ];
  assert.equal(quantile(buckets, 0.25), 0.5);
  assert.equal(quantile(buckets, 0.5), 1);
  assert.equal(quantile(buckets, 0.75), 3);
  assert.equal(quantile(buckets, 1), 4);
  assert.equal(quantile([], 0.5), null);
  assert.equal(quantile([{ limit: 1, count: 0 }], 0.5), null);
  assert.equal(
    quantile(
      [
        { limit: 1, count: 1 },
        { limit: Infinity, count: 9 },
      ],
      0.95,
    ),
    1,
  );
});

function metricsOf({ applied, review, slow, drafted, accepted }) {
  const done = applied + review;
  return parseMetrics(`
apply_requests_total{result="applied"} ${applied}
apply_requests_total{result="needs_review"} ${review}
apply_e2e_request_latency_seconds_bucket{le="0.1"} ${done - slow}
apply_e2e_request_latency_seconds_bucket{le="1.0"} ${done}
apply_e2e_request_latency_seconds_bucket{le="+Inf"} ${done}
apply_tokens_per_target_pass_sum ${done * 8}
apply_tokens_per_target_pass_count ${done}
apply_spec_decode_num_draft_tokens_total ${drafted}
apply_spec_decode_num_accepted_tokens_total ${accepted}
apply_drafter_drafted_tokens_total{drafter="merge"} ${drafted - 10}
apply_drafter_accepted_tokens_total{drafter="merge"} ${accepted}
apply_drafter_drafted_tokens_total{drafter="original"} 10
apply_drafter_accepted_tokens_total{drafter="original"} 0
apply_prefix_cache_queries_total 0
apply_prefix_cache_hits_total 0
apply_kv_cache_usage_perc 0.25
apply_num_requests_running 2
apply_num_requests_waiting 1
`);
}

test("figures are those of the time between two readings", () => {
  const earlier = {
    at_s: 10,
    samples: metricsOf({ applied: 100, review: 10, slow: 5, drafted: 50, accepted: 20 }),
  };
  const later = {
    at_s: 20,
    samples: metricsOf({ applied: 115, review: 15, slow: 10, drafted: 90, accepted: 50 }),
  };
  const figures = figuresBetween(earlier, later);
  assert.equal(figures.requestsPerSecond, 2);
  assert.deepEqual(figures.statusShares, [
    ["applied", 0.75],
    ["needs_review", 0.25],
  ]);
  assert.ok(figures.p50 < 0.1 && figures.p95 > 0.1);
  assert.equal(figures.tokensPerPass, 8);
  assert.equal(figures.acceptance, 0.75);
  assert.deepEqual(figures.drafters, [{ drafter: "merge", drafted: 40, accepted: 30 }]);
  assert.equal(figures.cacheHits, null);
  assert.deepEqual([figures.kvUse, figures.running, figures.waiting], [0.25, 2, 1]);
});

test("a first reading and a server that began anew give no negative figures", () => {
  const reading = {
    at_s: 10,
    samples: metricsOf({ applied: 100, review: 0, slow: 0, drafted: 50, accepted: 20 }),
  };
  const first = figuresBetween(reading, reading);
  assert.deepEqual([first.requestsPerSecond, first.p50, first.statusShares], [0, null, []]);
  const anew = {
    at_s: 12,
    samples: metricsOf({ applied: 4, review: 0, slow: 0, drafted: 2, accepted: 1 }),
  };
  const figures = figuresBetween(reading, anew);
  assert.equal(figures.requestsPerSecond, 2);
  assert.equal(figures.acceptance, 0.5);
  assert.ok(
    bucketGrowth(reading.samples, anew.samples, "apply_e2e_request_latency_seconds").every(
      ({ count }) => count >= 0,
    ),
  );
});

const step = (at_s, origins, rejected = [], drafter = null) => ({
  at_s,
  drafter,
  tokens: origins.map((origin, index) => ({ text: `${index} `, origin })),
  rejected,
});

test("regions are replayed in the order of time, and counted", () => {
  const frames = framesOf([
    {
      region: 0,
      steps: [step(0, ["forced"]), step(0.2, ["drafted", "drafted", "written"], ["x"], "snippet")],
    },
    { region: 1, steps: [step(0.1, ["written"])] },
  ]);
  assert.deepEqual(
    frames.map(({ region }) => region),
    [0, 1, 0],
  );
  assert.deepEqual(countTokens(frames), { forced: 1, drafted: 2, written: 2, rejected: 1 });
  assert.equal(describeFrame(frames, -1), "Before the first step");
  assert.equal(
    describeFrame(frames, 2),
    "Step 3 of 3 at 200.0 ms: 3 tokens, 2 accepted of a draft from snippet, 1 rejected, 1 written by the model",
  );
  assert.equal(describeFrame(frames, 0), "Step 1 of 3 at 0.0 ms: 1 token, 1 forced");
});

test("every snippet names the address, and none a key that is not needed", () => {
  for (const needsKey of [false, true]) {
    const snippets = snippetsFor("https://apply.example.com/below/", { needsKey });
    assert.equal(new Set(snippets.map(({ id }) => id)).size, snippets.length);
    for (const { title, code } of snippets) {
      assert.ok(code.includes("https://apply.example.com/below"), title);
      assert.ok(!code.includes("below//"), title);
    }
    const curl = snippets.find(({ id }) => id === "curl").code;
    assert.equal(curl.includes("Authorization"), needsKey);
  }
  const mcp = snippetsFor("http://[::1]:1", { needsKey: false }).find(
    ({ id }) => id === "claude-code",
  );
  assert.equal(JSON.parse(mcp.code).mcpServers.apply.env.APPLY_SERVICE_URL, "http://[::1]:1");
});

test("the service is where the document is, below any root path", () => {
  assert.equal(serviceAddress("http://127.0.0.1:8722/"), "http://127.0.0.1:8722/");
  assert.equal(serviceAddress("http://127.0.0.1:8722/docs?x=1#live"), "http://127.0.0.1:8722/");
  assert.equal(
    serviceAddress("https://a.example/below/here/#live"),
    "https://a.example/below/here/",
  );
  assert.equal(
    serviceAddress("https://a.example/below/here/docs"),
    "https://a.example/below/here/",
  );
});

test("the parts of a time add up to it, unless regions were computed side by side", () => {
  const parts = timeParts({ queue: 0.1, prefill: 0.2, decode: 0.3, total: 1 });
  assert.ok(Math.abs(parts.reduce((sum, { seconds }) => sum + seconds, 0) - 1) < 1e-9);
  assert.equal(timeParts({ queue: 1, prefill: 1, decode: 1, total: 2 }).at(-1).seconds, 0);
  assert.deepEqual([0, 0.00123, 0.0123, 0.123, 1.234].map(duration), [
    "0.00 ms",
    "1.23 ms",
    "12.3 ms",
    "123 ms",
    "1.23 s",
  ]);
});

test("examples have names of their own, and texts", () => {
  assert.equal(new Set(EXAMPLES.map(({ name }) => name)).size, EXAMPLES.length);
  assert.ok(EXAMPLES.every(({ original, update }) => original !== "" && update !== ""));
});
