/** The page in Debian's Chromium, at a live service without keys. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { checkAccessibleInBothThemes, checkFits, openBrowser, visit, WCAG } from "./browser.mjs";

const URL_ = `${process.env.PAGE_URL}/`;
let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

const at = (tour, options) => visit(browser, URL_, tour, options);
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const status = (page) => page.locator("[data-status]");

async function applyExample(page, name) {
  await press(page, name);
  await press(page, "Apply");
}

test("each example ends as it should, and the page is accessible in both themes", async () => {
  await at(async (page) => {
    await checkAccessibleInBothThemes(page);
    for (const [name, ending] of [
      ["A clear edit", "applied"],
      ["Search and replace", "applied"],
      ["An edit in doubt", "needs_review"],
    ]) {
      await applyExample(page, name);
      await page.locator(`[data-status="${ending}"]`).waitFor();
      await checkAccessibleInBothThemes(page);
    }
    assert.match(await page.locator("#state").textContent(), /Model: /);
  });
});

test("the model writes, and its figures and times are shown", async () => {
  await at(async (page) => {
    await applyExample(page, "With the model");
    await page.locator('[data-status="applied"]').waitFor();
    assert.match(await page.locator(".facts").innerText(), /Forward passes\s+[1-9]/);
    assert.match(await page.locator(".legend").innerText(), /Prefill\s+[\d.]+ m?s[^]*Total/);
    assert.equal(await page.locator(".replay").count(), 1);
    await checkAccessibleInBothThemes(page);
  });
});

test("a question is resolved by its button", async () => {
  await at(async (page) => {
    await applyExample(page, "An edit in doubt");
    const resolved = page.waitForRequest("**/v1/apply");
    await page.getByRole("button", { name: /^Choose 2: Writer.close/ }).click();
    assert.equal((await resolved).postDataJSON().include, undefined, "nothing is decoded");
    await page.locator('[data-status="applied"]').waitFor();
    assert.equal(await page.locator(".question").count(), 0);
    const shown = await page.getByLabel("The file after the edit").innerText();
    assert.ok(shown.indexOf("log(self)") > shown.indexOf("class Writer"), shown);
  });
});

test("a finding stands in the margin at its line, and its button leads there", async () => {
  await at(async (page) => {
    await applyExample(page, "An edit in doubt");
    const sign = page.locator(".cm-finding");
    await sign.waitFor();
    const after_ = page.locator(".cm-merge-b");
    const line = page.getByRole("button", { name: /^Line \d+$/ }).first();
    const number = Number((await line.textContent()).replace("Line ", ""));
    const place = await after_
      .locator(".cm-lineNumbers .cm-gutterElement")
      .filter({ hasText: new RegExp(`^${number}$`) })
      .last()
      .boundingBox();
    const shown = await sign.boundingBox();
    assert.ok(
      Math.abs(place.y + place.height / 2 - shown.y - shown.height / 2) < 12,
      `${place.y} ${shown.y}`,
    );
    assert.match(await sign.getAttribute("aria-label"), /^warning: /);
    await line.click();
    assert.ok(
      await after_.locator(".cm-content").evaluate((content) => content === document.activeElement),
    );
  });
});

test("a refused edit is explained in words", async () => {
  await at(
    async (page) => {
      await applyExample(page, "A refused edit");
      const problem = page.locator(".problem");
      await problem.waitFor();
      assert.match(await problem.innerText(), /What to do: [^]*Error/);
      await checkAccessibleInBothThemes(page);
    },
    { statuses: [422] },
  );
});

test("a result is copied, and taken as the file for the next update", async () => {
  const tour = async (page) => {
    await applyExample(page, "A clear edit");
    await page.getByRole("button", { name: "Copy the merged file" }).click();
    await page.getByText("Copied").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /def greet\(name, mark="!"\):/);
    await press(page, "Take as the file");
    assert.match(await page.getByLabel("The file", { exact: true }).innerText(), /mark="!"/);
    assert.equal(await status(page).count(), 0);
  };
  await at(tour, { permissions: ["clipboard-read", "clipboard-write"] });
});

test("all works by the keyboard", async () => {
  await at(async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(
      await page.evaluate(() => document.activeElement.textContent),
      "Skip to the content",
    );
    await page.getByLabel("The update").click();
    await page.keyboard.press("Control+A");
    await page.keyboard.type("# ...\ndef greet(name):\nprint(name)\n");
    await page.keyboard.press("Control+Enter");
    await status(page).waitFor();
    const typed = await page.getByLabel("The update").innerText();
    assert.match(typed, /^# \.\.\.\ndef greet\(name\):\n\s*print\(name\)/);
    await page.getByLabel("The update").focus();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "path");
    await page.getByRole("tab", { name: "Playground" }).focus();
    for (const [key, name] of [
      ["ArrowRight", "Live"],
      ["ArrowRight", "Connect"],
      ["ArrowRight", "Playground"],
      ["ArrowLeft", "Connect"],
      ["Home", "Playground"],
      ["End", "Connect"],
    ]) {
      await page.keyboard.press(key);
      const selected = page.getByRole("tab", { selected: true });
      assert.equal(await selected.textContent(), name);
      assert.ok(await selected.evaluate((tab) => tab === document.activeElement));
    }
    assert.equal(new URL(page.url()).hash, "#connect");
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    await page.reload();
    assert.equal(await page.getByRole("tab", { selected: true }).textContent(), "Connect");
  });
});

const sum = (numbers) => numbers.reduce((whole, one) => whole + one, 0);
const countOf = (steps, origin) =>
  sum(steps.map(({ tokens }) => tokens.filter((one) => one.origin === origin).length));

test("the decoding is replayed step by step, as the answer tells it", async () => {
  await at(async (page) => {
    const answered = page.waitForResponse("**/v1/apply");
    await applyExample(page, "A new parameter");
    const { trace } = await (await answered).json();
    assert.equal(trace.length, 1, "the example has one region");
    const [{ steps }] = trace;
    const count = steps.length;
    assert.ok(count >= 3, `${count} steps`);
    const words = page.locator(".replay-words");
    const text = page.getByRole("region", { name: "Text up to this step" });
    const slider = page.getByRole("slider", { name: "Step" });
    await words.waitFor();
    await checkAccessibleInBothThemes(page);
    for (let shown = count; shown > 0; shown -= 1) {
      const seen = steps.slice(0, shown);
      const step = seen.at(-1);
      const pieces = seen.flatMap(({ tokens }) => tokens.map((one) => one.text));
      assert.match(await words.textContent(), new RegExp(`^Step ${shown} of ${count} at `));
      assert.deepEqual(await text.locator("span.token").allTextContents(), pieces);
      assert.deepEqual(await text.locator("del").allTextContents(), step.rejected);
      for (const origin of ["forced", "drafted", "written"]) {
        assert.equal(await text.locator(`span.token.${origin}`).count(), countOf(seen, origin));
      }
      assert.equal(await text.locator("span.now").count(), step.tokens.length);
      const sums = ["forced", "drafted", "written"].map(
        (origin) => `${countOf(seen, origin)} ${origin}`,
      );
      sums.push(`${sum(seen.map(({ rejected }) => rejected.length))} rejected`);
      assert.equal(await page.getByText("So far:").textContent(), `So far: ${sums.join(", ")}.`);
      await press(page, "Step back");
    }
    assert.equal(await words.textContent(), "Before the first step");
    await press(page, "Step on");
    await slider.focus();
    await page.keyboard.press("End");
    assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`^Step ${count} of `));
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    assert.match(await slider.getAttribute("aria-valuetext"), /^Step 1 of /);
    await press(page, "Play");
    await press(page, "Pause");
    await press(page, "Play");
    await words.getByText(new RegExp(`^Step ${count} of`)).waitFor();
    await page.getByRole("button", { name: "Play", exact: true }).waitFor();
  });
});

const QUICK = { original: "a = 1\nb = 2\n", update: "a = 1\nb = 3\n", use_model: "never" };
const VALUES = Array.from({ length: 12 }, (_none, line) => `value_${line} = ${line}\n`);
const DRAFTED = {
  original: VALUES.join(""),
  update: "# ...\nvalue_3 = 7\nvalue_4 = load()\n# ...\n",
  use_model: "always",
  constraint: "none",
};

async function sendEdits(count, edit) {
  const body = JSON.stringify({ ...edit, path: "a.py" });
  for (let sent = 0; sent < count; sent += 1) {
    const answer = await fetch(`${URL_}v1/apply`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
    });
    assert.equal(answer.status, 200);
  }
}

test("live figures move under load", async () => {
  await at(async (page) => {
    await page.getByRole("tab", { name: "Live" }).click();
    await page
      .locator("#figure-rate")
      .getByText(/^0\.00$/)
      .waitFor();
    await page.waitForTimeout(1200);
    await sendEdits(20, QUICK);
    await page
      .locator("#figure-rate")
      .getByText(/^(?!0\.00)\d+\.\d\d$/)
      .waitFor();
    await page.locator("#figure-p50").getByText(/ m?s$/).waitFor();
    await page.locator("#figure-p95").getByText(/ m?s$/).waitFor();
    await page.getByRole("row", { name: /^(applied|unchanged) \d+ %/ }).waitFor();
    await sendEdits(1, DRAFTED);
    await page.getByRole("row", { name: /^merge \d+ \d+ \d+ %$/ }).waitFor();
    assert.equal(await page.locator(".chart canvas").count(), 4);
    const drawn = await page
      .locator(".chart canvas")
      .first()
      .evaluate((canvas) =>
        canvas
          .getContext("2d")
          .getImageData(0, 0, canvas.width, canvas.height)
          .data.some((value) => value > 0),
      );
    assert.ok(drawn);
    await checkAccessibleInBothThemes(page);
    await press(page, "Pause");
    let reads = 0;
    page.on("request", (request) => (reads += request.url().endsWith("/metrics") ? 1 : 0));
    await page.waitForTimeout(2500);
    assert.equal(reads, 0);
    await press(page, "Go on");
    await page.waitForTimeout(2500);
    assert.ok(reads >= 2, `${reads} reads`);
    await page.getByRole("tab", { name: "Connect" }).click();
    const before_ = reads;
    await page.waitForTimeout(1500);
    assert.ok(reads <= before_ + 1, "nothing is read while nobody looks");
  });
});

test("every snippet names this server and is copied", async () => {
  const tour = async (page) => {
    await page.getByRole("tab", { name: "Connect" }).click();
    const snippets = page.locator(".snippet");
    const count = await snippets.count();
    assert.ok(count >= 8);
    for (let index = 0; index < count; index += 1) {
      const code = await snippets.nth(index).locator("code").textContent();
      assert.ok(code.includes(process.env.PAGE_URL), code);
      await snippets.nth(index).getByRole("button").click();
      await snippets.nth(index).getByText("Copied").waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), code);
    }
    const jumps = page.getByRole("navigation", { name: "Clients" }).getByRole("button");
    assert.equal(await jumps.count(), count);
    await jumps.last().click();
    assert.equal(await page.evaluate(() => document.activeElement.id), "connect-command-line");
    await checkAccessibleInBothThemes(page);
  };
  await at(tour, { permissions: ["clipboard-read", "clipboard-write"] });
});

test("where copying is not allowed the button says so", async () => {
  await at(async (page) => {
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.getByRole("tab", { name: "Connect" }).click();
    await page.getByRole("button", { name: "Copy the snippet for curl" }).click();
    await page.getByText("Copying is not allowed").waitFor();
  });
});

test("nothing is wider than a narrow screen", async () => {
  await at(
    async (page) => {
      await applyExample(page, "An edit in doubt");
      await status(page).waitFor();
      await page.getByLabel("The file after the edit, with removed lines").waitFor();
      for (const name of ["Playground", "Live", "Connect"]) {
        await page.getByRole("tab", { name }).click();
        await checkFits(page);
        await checkAccessibleInBothThemes(page);
      }
    },
    { viewport: { width: 360, height: 740 } },
  );
});

test("the theme follows the system, or the switch, which is remembered", async () => {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await at(async (page) => {
    const light = await ground(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.locator('html[data-theme="dark"]').waitFor();
    const dark = await ground(page);
    assert.notEqual(dark, light);
    await page.locator("#theme").selectOption("light");
    assert.equal(await ground(page), light);
    await page.reload();
    assert.equal(await ground(page), light);
    await page.locator("#theme").selectOption("auto");
    assert.equal(await ground(page), dark);
  });
});

test("a server that has gone is said in words", async () => {
  await at(async (page, context) => {
    await page.locator("#state").getByText("Model").waitFor();
    await context.route("**/v1/apply", (route) => route.abort());
    page.removeAllListeners("console");
    await press(page, "Apply");
    await page.locator(".problem").getByText("The server cannot be reached").waitFor();
  });
});

test("the API is described, and tried, and meets WCAG", async () => {
  const tour = async (page) => {
    await page.locator(".opblock").first().waitFor();
    await checkAccessibleInBothThemes(page, WCAG);
    await page
      .getByRole("button", { name: /^post \/apply/i })
      .first()
      .click();
    await press(page, "Try it out");
    await page.getByLabel("Request body").fill('{"original": "a = 1\\n", "update": "a = 2\\n"}');
    await press(page, "Execute");
    const response = page.locator(".live-responses-table .response").first();
    await response.waitFor();
    assert.match(await response.innerText(), /^200/);
    await checkAccessibleInBothThemes(page, WCAG);
    await page.setViewportSize({ width: 360, height: 740 });
    await checkFits(page);
    await page.getByRole("link", { name: "Page" }).click();
    await page.getByRole("tab", { name: "Playground" }).waitFor();
  };
  await visit(browser, `${URL_}docs`, tour);
});

test("no button is without a test here", async () => {
  await at(async (page) => {
    await applyExample(page, "An edit in doubt");
    await status(page).waitFor();
    const names = await page
      .locator("button")
      .evaluateAll((buttons) =>
        buttons.map((one) => one.getAttribute("aria-label") ?? one.textContent),
      );
    const known = [
      ...[
        "Key…",
        "Use the key",
        "Forget the key",
        "Cancel",
        "Playground",
        "Live",
        "Connect",
        "Pause",
        "Apply",
        "Take as the file",
      ],
      ...[
        "A clear edit",
        "An edit in doubt",
        "With the model",
        "A new parameter",
        "Search and replace",
        "A refused edit",
      ],
    ];
    const unknown = names.filter(
      (name) => !known.includes(name) && !/^(Copy|Choose \d|Line \d)/.test(name),
    );
    const clients = await page.locator(".snippet h3").allTextContents();
    assert.deepEqual(
      unknown.filter((name) => !clients.includes(name)),
      [],
    );
  });
});
