/** The extension in VS Code itself, which code-server shows in Debian's Chromium. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

const require = createRequire(new URL("../../../clients/page/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const { EDITOR_URL, PROJECT, CHROMIUM } = process.env;

const GREETING = "import sys\r\n\r\n\r\ndef greet(name):\r\n    print('Hellö 👋🏽 e\u0301 ' + name)\r\n";
const UPDATE =
  "# ... existing code ...\ndef greet(name, mark='!'):\n    print('Hellö 👋🏽 e\u0301 ' + name + mark)\n";
const GREETED = GREETING.replace("(name)", "(name, mark='!')").replace("+ name)", "+ name + mark)");
const DOUBTFUL = "a = 1\n\nb = 2\n\na = 1\n";
const DOUBT = "# ...\na = 3\n# ...\n";

let browser;
let page;
let files = 0;
before(async () => {
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  browser = await chromium.launch({ executablePath: CHROMIUM, args });
});
after(() => browser?.close());
beforeEach(async () => {
  const permissions = ["clipboard-read", "clipboard-write"];
  page = await browser.newPage({ viewport: { width: 1400, height: 900 }, permissions });
  page.setDefaultTimeout(60_000);
  await page.goto(`${EDITOR_URL}/?folder=${PROJECT}`);
  await page.locator(".statusbar-item", { hasText: "apply" }).first().waitFor();
});
afterEach(() => page.close());

/** A new file of the project, open in the editor; the text that it has on the disk. */
async function openFile(text, ending = "py") {
  files += 1;
  const name = `file_${files}.${ending}`;
  writeFileSync(join(PROJECT, name), text);
  await page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).dblclick();
  await page.locator(".tab.active", { hasText: name }).waitFor();
  await page.locator(".monaco-editor .view-line").first().waitFor();
  return { name, read: () => readFileSync(join(PROJECT, name), "utf8") };
}

async function run(command) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input.input").fill(`>${command}`);
  await page
    .locator(".quick-input-list .monaco-list-row", { hasText: command })
    .first()
    .click();
}

async function applyClipboard(update) {
  await page.evaluate((text) => navigator.clipboard.writeText(text), update);
  await run("Apply: Apply Update from Clipboard");
}

const press = (name) =>
  page.locator(".notifications-toasts").getByRole("button", { name, exact: true }).first().click();

/** Save until the file on the disk is as it should be. */
async function saved(file, text) {
  for (let tries = 0; file.read() !== text && tries < 40; tries += 1) {
    await page.locator(".tab", { hasText: file.name }).first().click();
    await page.keyboard.press("Control+S");
    await page.waitForTimeout(250);
  }
  assert.equal(file.read(), text);
}

test("the update in the clipboard is shown beside the file, and accepted", async () => {
  const file = await openFile(GREETING);
  await applyClipboard(UPDATE);
  await page.locator(".tab.active", { hasText: `${file.name}: applied` }).waitFor();
  assert.equal(file.read(), GREETING);
  await press("Accept");
  await saved(file, GREETED);
  assert.equal(await page.locator(".tab", { hasText: "applied" }).count(), 0);
});

test("a preview is discarded by the button above the editor", async () => {
  const file = await openFile(GREETING);
  await applyClipboard(UPDATE);
  await page.locator(".tab.active", { hasText: `${file.name}: applied` }).waitFor();
  await page.locator(".editor-actions").getByRole("button", { name: "Discard Update" }).click();
  await page.locator(".tab", { hasText: "applied" }).waitFor({ state: "detached" });
  await saved(file, GREETING);
});

test("a doubt is a list of choices, and its findings are problems of the file", async () => {
  const file = await openFile(DOUBTFUL);
  await applyClipboard(DOUBT);
  const choices = page.locator(".quick-input-list .monaco-list-row");
  await choices.nth(1).waitFor();
  assert.ok((await choices.count()) >= 2);
  await choices.nth(1).click();
  await press("Accept");
  for (let tries = 0; file.read() === DOUBTFUL && tries < 40; tries += 1) {
    await page.keyboard.press("Control+S");
    await page.waitForTimeout(250);
  }
  assert.ok(["a = 3\n\nb = 2\n\na = 1\n", "a = 1\n\nb = 2\n\na = 3\n"].includes(file.read()));
});

test("a code block has a lens that applies it to the file that it names", async () => {
  const file = await openFile(GREETING);
  await openFile(`Change it:\n\n\`\`\`python ${file.name}\n${UPDATE}\`\`\`\n`, "md");
  await page.locator(".codelens-decoration a", { hasText: `Apply to ${file.name}` }).click();
  await page.locator(".tab.active", { hasText: `${file.name}: applied` }).waitFor();
  await press("Accept");
  await saved(file, GREETED);
});

test("an update that is refused is said in words, and changes nothing", async () => {
  const file = await openFile(GREETING);
  await applyClipboard("<<<<<<< SEARCH\nnothing like it\n=======\nx = 1\n>>>>>>> REPLACE\n");
  await page.locator(".notifications-toasts .notification-list-item-message").first().waitFor();
  await saved(file, GREETING);
});
