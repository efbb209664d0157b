/** A browser at the page that keeps count of what must not happen: errors, violations, requests. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../clients/page/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
// Chromium itself reports every answer of an error's status; the page cannot keep it from that.
const REPORTED_STATUS = /^Failed to load resource: the server responded with a status of (\d+)/;

export async function openBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Where tests run as root, Chromium's own sandbox cannot start.
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
}

/** Run a visit and check afterwards that nothing went wrong unseen. */
export async function visit(browser, address, tour, { statuses = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 1400 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const errors = [];
  const foreign = [];
  page.on("pageerror", (error) => errors.push(`${error.stack}`));
  page.on("console", (message) => {
    const status = REPORTED_STATUS.exec(message.text())?.[1];
    if (["error", "warning"].includes(message.type()) && !statuses.includes(Number(status))) {
      errors.push(message.text());
    }
  });
  page.on("request", (request) => {
    if (
      new URL(request.url()).origin !== new URL(address).origin &&
      !request.url().startsWith("data:")
    ) {
      foreign.push(request.url());
    }
  });
  await page.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => {
      globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  try {
    await page.goto(address);
    await tour(page, context);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    assert.deepEqual(errors, []);
    assert.deepEqual(foreign, []);
  } catch (error) {
    error.message += `\nerrors of the page: ${JSON.stringify(errors)}`;
    throw error;
  } finally {
    await context.close();
  }
}

/** Fail if axe finds anything; Swagger UI's own structure is held to WCAG alone. */
export async function checkAccessible(page, tags = [...WCAG, "best-practice"]) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async (values) => {
    const { violations } = await globalThis.axe.run(document, { runOnly: { type: "tag", values } });
    return violations.map(({ id, nodes }) => [
      id,
      ...nodes.map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`),
    ]);
  }, tags);
  assert.deepEqual(found, []);
}

/** The same in both colours, and with the page as wide as a telephone. */
export async function checkAccessibleInBothThemes(page, tags) {
  for (const theme of ["dark", "light"]) {
    await page.locator("#theme").selectOption(theme);
    await checkAccessible(page, tags);
  }
}

export { WCAG };

/** Fail if the page is wider than its window. */
export async function checkFits(page) {
  const [wide, window_] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    innerWidth,
  ]);
  assert.ok(wide <= window_, `the page is ${wide} px wide in a window of ${window_} px`);
}
