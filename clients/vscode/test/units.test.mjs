/** Code blocks, the files that they name, and smallest changes. */

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { build } from "esbuild";

const outdir = mkdtempSync(join(tmpdir(), "units-"));
const entryPoints = ["change", "blocks"].map((name) =>
  new URL(`../src/${name}.ts`, import.meta.url).pathname,
);
await build({ entryPoints, outdir, format: "esm", outExtension: { ".js": ".mjs" } });
const { changeBetween } = await import(join(outdir, "change.mjs"));
const { codeBlocks, pathOfBlock } = await import(join(outdir, "blocks.mjs"));

function generatorOf(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

test("a change turns one text into the other and splits no character", () => {
  const next = generatorOf(7);
  const pieces = ["a", "b", "\r\n", "\n", "\r", "👋", "👍", "e\u0301", "é"];
  const word = () => Array.from({ length: next(8) }, () => pieces[next(pieces.length)]).join("");
  for (let round = 0; round < 20000; round += 1) {
    const [before, after] = [word(), word()];
    const { start, end, text } = changeBetween(before, after);
    assert.equal(before.slice(0, start) + text + before.slice(end), after);
    assert.ok(start <= end);
    assert.equal(text.isWellFormed?.() ?? true, true);
    for (const at of [start, end]) {
      assert.ok(!(before[at - 1] === "\r" && before[at] === "\n"), JSON.stringify([before, after]));
    }
    if (before === after) {
      assert.deepEqual([end - start, text], [0, ""]);
    }
  }
});

test("blocks are those of CommonMark's fences", () => {
  const text = [
    "```py", "one", "```", "~~~", "```", "two", "~~~", "````", "```", "three", "````",
    "```", "", "```", "    ```", "no fence", "```js", "never closed",
  ].join("\n");
  const found = codeBlocks(text);
  assert.deepEqual(
    found.map(({ content, firstLine, lastLine }) => [content.join("|"), firstLine, lastLine]),
    [["one", 1, 1], ["```|two", 4, 5], ["```|three", 8, 9]],
  );
});

test("a block names its file in one of several places, or none", () => {
  const named = (before, info, ...lines) => {
    const [block] = codeBlocks([before, "```" + info, ...lines, "```"].join("\n"));
    return pathOfBlock(block);
  };
  assert.equal(named("", "python src/a.py", "x"), "src/a.py");
  assert.equal(named("", 'ts title="web/b.ts"', "x"), "web/b.ts");
  assert.equal(named("", "ts:lib/c.ts", "x"), "lib/c.ts");
  assert.equal(named("", "src/d.go", "x"), "src/d.go");
  assert.equal(named("", "js", "// src/e.js", "x"), "src/e.js");
  assert.equal(named("", "html", "<!-- path: f.html -->", "x"), "f.html");
  assert.equal(named("", "py", "# file: pkg/g.py", "x"), "pkg/g.py");
  assert.equal(named("**src/h.rs**", "rust", "x"), "src/h.rs");
  assert.equal(named("`src/i.rs`:", "rust", "x"), "src/i.rs");
  assert.equal(named("See README.md for more.", "py", "x"), null);
  assert.equal(named("", "py", "# see os.path for more", "x"), null);
  assert.equal(named("", "py", "import os.path"), null);
  assert.equal(named("", "", "x"), null);
});
