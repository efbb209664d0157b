/** The client against the real service, whose addresses the environment names. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  APIStatusError,
  ApplyClient,
  BadRequestError,
  EditRejectedError,
  isSure,
  NotFoundError,
  TooLargeError,
  UnknownChoiceError,
  UnprocessableEditError,
} from "apply-client";

import { listOf, LOST_DIFF, MERGED, ORIGINAL, UPDATE } from "./greeting.mjs";

// The model of the first service writes MERGED, that of the second one nonsense.
const client = new ApplyClient({ baseUrl: process.env.SERVICE_URL });
const badlyAnswering = new ApplyClient({ baseUrl: process.env.NONSENSE_URL });
const NO_MODEL = { use_model: "never" };

/** Five lines; those of the number 20 look as if they were of 22. */
function functionOf(number) {
  const named = number === 20 ? 22 : number;
  const total = `total_part_${String(named).padStart(2, "0")}`;
  return (
    `def part_${number}(value):\n    ${total} = value + ${number}\n` +
    `    for step in range(${named}):\n        ${total} += step * ${number}\n    return ${total}\n`
  );
}

test("a doubt comes with choices, and one of them is the result", async () => {
  const original =
    "class A:\n    def close(self):\n        self.fd = None\n\n\n" +
    "class B:\n    def close(self):\n        self.fd = None\n";
  const update = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n";
  const edit = { original, update, path: "a.py", ...NO_MODEL };
  const asked = await client.apply(edit);
  assert.deepEqual([asked.status, isSure(asked)], ["needs_review", false]);
  const choice = asked.choices.find(({ where }) => where.symbol === "B.close");
  const resolved = await client.resolve(edit, choice);
  assert.deepEqual([resolved.status, resolved.source], ["applied", "resolved"]);
  assert.ok(resolved.merged.endsWith("        log(self)\n        self.fd = None\n"));
  assert.deepEqual((await client.resolve(edit, choice.id)).merged, resolved.merged);
  const other = { ...edit, update: update.replace("log", "tell") };
  await assert.rejects(client.resolve(other, choice), (error) => {
    assert.ok(error instanceof UnknownChoiceError);
    assert.equal(error.choices.length, asked.choices.length);
    return true;
  });
});

test("several files are applied all or none, and a question is answered by file", async () => {
  const files = [
    { path: "a.py", original: new TextEncoder().encode("a = 1\n"), update: [{ old_string: "1", new_string: "2" }] },
    { path: "b.py", original: "b = 1\n\nb = 1\n", update: [{ old_string: "b = 1", new_string: "b = 2" }] },
  ];
  const asked = await client.applyFiles({ files, atomic: true });
  assert.deepEqual([asked.status, isSure(asked), asked.in_doubt], ["needs_review", false, ["b.py"]]);
  assert.deepEqual(asked.files.map(({ problem }) => problem.code), ["withheld", "needs-review"]);
  files[1].resolve = asked.files[1].problem.choices[0].id;
  const { status, files: done } = await client.applyFiles({ files, atomic: true });
  assert.equal(status, "applied");
  assert.deepEqual(done[0].result.merged, new TextEncoder().encode("a = 2\n"));
  assert.match(done[1].result.merged, /^b = 2\n\nb = 1\n$|^b = 1\n\nb = 2\n$/);
  await assert.rejects(client.applyFiles({ files: [] }), BadRequestError);
});

test("text in gives text out, with verdict and figures", async () => {
  const result = await client.apply({
    original: ORIGINAL,
    update: UPDATE,
    path: "greet.py",
    ...NO_MODEL,
  });
  assert.deepEqual(
    [result.status, result.merged, result.source, isSure(result)],
    ["applied", MERGED, "merge", true],
  );
  assert.match(result.diff, /^--- a\/greet\.py\n/);
  assert.deepEqual(result.removed_lines.map(({ line }) => line), [4, 5]);
  assert.ok(result.timing.total > 0);
  const again = await client.apply({ original: MERGED, update: MERGED, ...NO_MODEL });
  assert.equal(again.status, "unchanged");
});

for (const [name, encode] of [
  ["UTF-8 with a mark and CRLF", (text) => Buffer.from(`\ufeff${text.replaceAll("\n", "\r\n")}`)],
  ["UTF-16", (text) => Buffer.from(`\ufeff${text}`, "utf16le")],
  ["Latin-1", (text) => Buffer.from(text, "latin1")],
]) {
  test(`bytes in give bytes out, in ${name}`, async () => {
    const original = new Uint8Array(encode(ORIGINAL.replace("sys\n", "sys  # \xe9\xfc\n")));
    const result = await client.apply({ original, update: UPDATE, ...NO_MODEL });
    assert.ok(result.merged instanceof Uint8Array);
    const expected = encode(MERGED.replace("sys\n", "sys  # \xe9\xfc\n"));
    assert.deepEqual(Buffer.from(result.merged), expected);
  });
}

test("characters of all lengths come back as they were", async () => {
  const letters = "é€😀\u2028\u00a0\t";
  const update = UPDATE.replace("print(name + mark)", `print("${letters}")`);
  const result = await client.apply({ original: ORIGINAL, update, ...NO_MODEL });
  assert.ok(result.merged.includes(`    print("${letters}")\n`));
});

test("the model writes into a stream", async () => {
  const items = await listOf(
    client.applyStream({ original: ORIGINAL, update: UPDATE, scope: "file", use_model: "always" }),
  );
  const types = items.map(({ type }) => type);
  assert.deepEqual(items[0], { type: "region", region: 0, start_line: 1, end_line: 9 });
  assert.deepEqual(types.slice(-2), ["region_done", "result"]);
  const written = items.filter(({ type }) => type === "token").map(({ text }) => text);
  assert.equal(written.join("").trimEnd(), MERGED.trimEnd());
  const { result } = items.at(-1);
  assert.deepEqual([result.merged, result.source], [MERGED, "model"]);
});

test("a region whose text is no merge restarts, and bytes stay bytes", async () => {
  // Two functions have the line of the update, so that the model is asked for a place.
  const original = Array.from({ length: 43 }, (_, number) => functionOf(number)).join("\n\n");
  const update = "# ...\n    for step in range(22):\n        print(step)\n# ...\n";
  const items = await listOf(
    badlyAnswering.applyStream({ original: Buffer.from(original), update, constraint: "none" }),
  );
  const types = items.map(({ type }) => type);
  assert.deepEqual(types.slice(0, 2), ["region", "token"]);
  const restart = items.findIndex(({ type }) => type === "region_restart");
  assert.equal(items[restart].region, items[0].region);
  assert.equal(types[restart + 1], "region");
  const { type, result } = items.at(-1);
  assert.equal(type, "result");
  assert.ok(result.merged instanceof Uint8Array);
});

test("a rejected result has findings with hints, whole or streamed", async () => {
  const edit = { original: ORIGINAL, update: LOST_DIFF, path: "greet.py", ...NO_MODEL };
  const check = (error) => {
    assert.ok(error instanceof EditRejectedError && error instanceof UnprocessableEditError);
    assert.deepEqual(error.findings.map(({ severity }) => severity), ["error"]);
    assert.ok(error.findings.every(({ hint }) => hint.length > 0));
    assert.ok(error.requestId);
    return true;
  };
  await assert.rejects(client.apply(edit), check);
  await assert.rejects(listOf(client.applyStream(edit)), check);
  assert.equal((await client.apply({ ...edit, checks: "off" })).status, "rejected");
});

test("a place in doubt needs review", async () => {
  const original = "def a():\n    run()\n    stop()\n\n\ndef b():\n    run()\n    stop()\n";
  const update = "# ...\n    run()\n    rest()\n    stop()\n# ...\n";
  const result = await client.apply({ original, update, ...NO_MODEL });
  assert.equal(result.status, "needs_review");
  assert.ok(!isSure(result) && result.findings.length > 0);
});

for (const [code, kind, edit] of [
  ["empty-update", BadRequestError, { original: ORIGINAL, update: "" }],
  ["file-too-large", TooLargeError, { original: "x = 1\n".repeat(4000), update: UPDATE }],
  ["unknown-model", NotFoundError, { original: ORIGINAL, update: UPDATE, model: "none" }],
  ["binary-file", BadRequestError, { original: Uint8Array.of(0, 1, 2), update: UPDATE }],
  ["no-marker", UnprocessableEditError, { original: ORIGINAL, update: "x = 1", ...NO_MODEL }],
  [undefined, BadRequestError, { original: ORIGINAL, update: UPDATE, unheard_of: 1 }],
  [undefined, BadRequestError, { original: "lone \ud800 surrogate\n", update: UPDATE }],
]) {
  test(`${code ?? JSON.stringify(edit).slice(-30)} is ${kind.name}`, async () => {
    await assert.rejects(client.apply(edit), (error) => {
      assert.ok(error instanceof APIStatusError);
      assert.equal(error.constructor, kind);
      assert.equal(error.code, code ?? error.code);
      assert.ok(error.message.length > 0);
      return true;
    });
  });
}

test("many edits, some of them wrong, have one outcome each", async () => {
  const edits = Array.from({ length: 12 }, (_, number) => ({
    original: ORIGINAL.replace("print", `print_${number}`),
    update: number % 4 === 3 ? LOST_DIFF : UPDATE,
    ...NO_MODEL,
  }));
  const outcomes = await listOf(client.applyMany(edits, { maxConcurrency: 4 }));
  outcomes.sort((one, other) => one.position - other.position);
  assert.deepEqual(outcomes.map(({ position }) => position), [...edits.keys()]);
  for (const { position, edit, result, error } of outcomes) {
    assert.equal(edit, edits[position]);
    assert.equal(position % 4 === 3, error instanceof EditRejectedError);
    assert.equal(result === null, error !== null);
  }
});

test("who leaves a stream leaves the service free for the next", async () => {
  for (let count = 0; count < 12; count += 1) {
    const edit = { original: ORIGINAL, update: UPDATE, scope: "file", use_model: "always" };
    for await (const { type } of client.applyStream(edit)) {
      assert.equal(type, "region");
      break;
    }
  }
  assert.equal((await client.apply({ original: ORIGINAL, update: UPDATE })).merged, MERGED);
});

test("models and status tell what is served", async () => {
  const [card] = await client.models();
  assert.equal(card.id, "oracle");
  assert.ok(card.max_context_tokens > 0);
  assert.deepEqual(await client.status(), { isReady: true, reason: null });
});

test("another server's address is told from an apply-service", async () => {
  const elsewhere = new ApplyClient({ baseUrl: `${process.env.SERVICE_URL}/health` });
  await assert.rejects(elsewhere.models(), NotFoundError);
});
