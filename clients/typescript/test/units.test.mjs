/** The parts without a server: addresses, Base64, delays, server-sent events. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { AddressError, APIConnectionError, ApplyClient, isSure } from "apply-client";

import { resolveAddress } from "../dist/address.js";
import { encodeBase64, tryDecodeBase64 } from "../dist/base64.js";
import { delayOf, retryAfterMs } from "../dist/exchange.js";
import { SseParser } from "../dist/sse.js";

const POLICY = { maxRetries: 9, firstDelayMs: 100, maxDelayMs: 1000 };

test("addresses come from options, else from the environment, else are the default", () => {
  const environment = { APPLY_SERVICE_URL: "http://box:9000/", APPLY_API_KEY: " key " };
  assert.deepEqual(resolveAddress("https://a.b/c//", "k", environment), {
    url: "https://a.b/c",
    apiKey: "k",
  });
  assert.deepEqual(resolveAddress(undefined, undefined, environment), {
    url: "http://box:9000",
    apiKey: "key",
  });
  assert.deepEqual(resolveAddress(undefined, undefined, { APPLY_SERVICE_URL: "" }), {
    url: "http://127.0.0.1:8722",
    apiKey: null,
  });
});

for (const baseUrl of [
  "localhost:8722",
  "ftp://host",
  "http://",
  "http://user:password@host",
  "http://host/?a=1",
  "http://host/#a",
  "http://host:99999",
]) {
  test(`the address ${baseUrl} is refused`, () => {
    assert.throws(() => new ApplyClient({ baseUrl }), AddressError);
  });
}

test("a key that no header carries is refused without being shown", () => {
  assert.throws(
    () => new ApplyClient({ apiKey: "sécret" }),
    (error) => error instanceof AddressError && !error.message.includes("cret"),
  );
});

test("an option that is undefined is as good as left out", () => {
  const delays = ["firstDelayMs", "maxDelayMs"];
  for (const name of ["baseUrl", "apiKey", "timeoutMs", "maxRetries", "fetch", ...delays]) {
    assert.ok(new ApplyClient({ [name]: undefined }));
  }
});

test("options that make no sense are refused with their values", () => {
  for (const options of [
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { timeoutMs: 2 ** 31 },
    { maxRetries: -1 },
    { maxRetries: 1.5 },
    { firstDelayMs: -1 },
    { maxDelayMs: Number.NaN },
  ]) {
    const [[name, value]] = Object.entries(options);
    assert.throws(() => new ApplyClient(options), {
      name: "RangeError",
      message: new RegExp(`${name} (is )?${value}`),
    });
  }
  for (const maxConcurrency of [0, 257, 1.5]) {
    assert.throws(() => new ApplyClient().applyMany([], { maxConcurrency }), RangeError);
  }
});

test("Base64 carries every byte, and large files", () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, position) => (position * 7919) >> 3);
  const text = encodeBase64(bytes);
  assert.equal(text, Buffer.from(bytes).toString("base64"));
  assert.deepEqual(tryDecodeBase64(text), bytes);
  assert.equal(tryDecodeBase64("*"), null);
});

test("delays double up to their most, less a random part of up to a half", () => {
  const failure = new APIConnectionError("reset");
  const longest = [0, 1, 2, 3, 4, 5000].map((count) => delayOf(POLICY, failure, count, () => 0));
  assert.deepEqual(longest, [100, 200, 400, 800, 1000, 1000]);
  assert.equal(delayOf(POLICY, failure, 0, () => 1), 50);
});

test("a delay is never less than the service asked for", () => {
  const answer = { status: 429, headers: new Headers({ "Retry-After": "2" }), content: null };
  assert.equal(delayOf(POLICY, answer, 0, () => 0), 2025);
  const now = Date.parse("2030-01-01T00:00:00Z");
  for (const [value, expected] of [
    ["3", 3000],
    ["Tue, 01 Jan 2030 00:00:07 GMT", 7000],
    ["Mon, 31 Dec 2029 00:00:00 GMT", 0],
    ["soon", null],
    ["", null],
    ["-1 second", null],
  ]) {
    assert.equal(retryAfterMs(new Headers({ "Retry-After": value }), now), expected, value);
  }
});

const STREAM =
  "\ufeffevent: a\ndata: ä\r\ndata:  two\rid: 7\n\n" +
  ": nothing\n\nevent: lost\n\ndata\ndata:😀\r\n\r\n";

test("events are the same wherever their bytes are cut", () => {
  const bytes = Buffer.from(STREAM);
  const expected = [
    { name: "a", content: "ä\n two" },
    { name: "message", content: "\n😀" },
  ];
  for (let first = 0; first <= bytes.length; first += 1) {
    for (let second = first; second <= bytes.length; second += 1) {
      const parser = new SseParser();
      const cuts = [0, first, second, bytes.length];
      const pieces = [0, 1, 2].map((index) => bytes.subarray(cuts[index], cuts[index + 1]));
      assert.deepEqual(pieces.flatMap((piece) => parser.feed(piece)), expected);
    }
  }
});

test("an event without an end is refused, in one line or in many", () => {
  const parser = new SseParser(10);
  assert.throws(() => parser.feed(Buffer.from("data: 12345678")), /has 14 characters/);
  const lines = new SseParser(10);
  lines.feed(Buffer.from("data: 123\n"));
  lines.feed(Buffer.from("data: 456\n"));
  assert.throws(() => {
    for (let count = 0; count < 3; count += 1) {
      lines.feed(Buffer.from("data: 789\n"));
    }
  }, /the limit is 10/);
});

test("only what the checks found nothing in is sure", () => {
  const sure = ["applied", "unchanged", "needs_review", "rejected"].map((status) =>
    isSure({ status }),
  );
  assert.deepEqual(sure, [true, true, false, false]);
});
