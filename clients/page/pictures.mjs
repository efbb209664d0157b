/** Takes the pictures of the page at a live service: `node pictures.mjs ADDRESS FOLDER`. */

import { statSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

const [address, folder] = process.argv.slice(2);
const MAX_BYTES = 200 * 1024;
const LOAD_S = 25;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});

/** Let a page be brought into a state, and take its picture. */
async function take(name, options, prepare) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  await page.goto(address);
  await page.locator("#state").getByText("Model").waitFor();
  const shown = await prepare(page);
  await page.waitForTimeout(500);
  const path = join(folder, name);
  await (shown ?? page).screenshot({ path });
  const size = statSync(path).size;
  if (size > MAX_BYTES) {
    throw new Error(`${path} has ${size} bytes, at most ${MAX_BYTES} are wanted`);
  }
  console.log(`${path}: ${size} bytes`);
  await context.close();
}

async function apply(page, example) {
  await page.getByRole("button", { name: example, exact: true }).click();
  await page.getByRole("button", { name: "Apply", exact: true }).click();
  await page.locator("[data-status]").waitFor();
}

await take("page.png", { viewport: { width: 1200, height: 1400 } }, (page) =>
  apply(page, "An edit in doubt"),
);
await take("page-diff.png", { viewport: { width: 1200, height: 1500 } }, async (page) => {
  await apply(page, "A new parameter");
  return page.locator("#result");
});
await take("page-live.png", { colorScheme: "dark" }, async (page) => {
  await page.getByRole("tab", { name: "Live" }).click();
  await sendEdits(page);
});
await browser.close();

/** Send the page's examples in waves, so that the charts have something to show. */
async function sendEdits(page) {
  const end = Date.now() + LOAD_S * 1000;
  for (let sent = 0; Date.now() < end; sent += 1) {
    const lines = Array.from(
      { length: 12 },
      (_none, line) => `value_${line} = ${line * (sent % 7)}`,
    );
    const edit = {
      path: "values.py",
      original: `${lines.join("\n")}\n`,
      update: `# ...\nvalue_3 = ${sent}\nvalue_4 = load()\n# ...\n`,
      use_model: sent % 4 === 0 ? "always" : "never",
    };
    await page.request.post(`${address}v1/apply`, { data: edit });
    await page.waitForTimeout(120 + 110 * Math.sin(sent / 6));
  }
}
