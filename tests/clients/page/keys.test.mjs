/** The page at a server that wants keys, below a root path. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { checkAccessible, openBrowser, visit } from "./browser.mjs";

const { KEYED_URL, EDIT_KEY, ADMIN_KEY } = process.env;
const URL_ = `${KEYED_URL}/`;
let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

const statuses = [401, 403];
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

async function giveKey(page, key) {
  await page.getByLabel("Key", { exact: true }).fill(key);
  await press(page, "Use the key");
}

async function seeDialog(page) {
  await page.getByRole("dialog", { name: "API key" }).waitFor();
}

test("a key is asked for until it is right, and kept in the tab alone", async () => {
  const tour = async (page, context) => {
    await seeDialog(page);
    await checkAccessible(page);
    await giveKey(page, `${EDIT_KEY.slice(0, -4)}AAAA`);
    await page.getByText("unknown, expired or revoked").waitFor();
    await giveKey(page, EDIT_KEY);
    await page.locator("#state").getByText("Model: ").waitFor();
    await press(page, "Apply");
    await page.locator("[data-status]").waitFor();
    const kept = await page.evaluate(() => [
      Object.values(sessionStorage),
      Object.values(localStorage),
      document.cookie,
    ]);
    assert.deepEqual(kept, [[EDIT_KEY], [], ""]);
    assert.deepEqual(await context.cookies(), []);
    await page.getByRole("tab", { name: "Connect" }).click();
    const curl = await page.locator(".snippet code").first().textContent();
    assert.ok(curl.includes("Authorization: Bearer $APPLY_API_KEY") && !curl.includes(EDIT_KEY));
    assert.ok(curl.includes(`${KEYED_URL}/v1/apply`), curl);
  };
  await visit(browser, URL_, tour, { statuses });
});

test("who gives no key is told what is missing, and can give one later", async () => {
  const tour = async (page) => {
    await seeDialog(page);
    await press(page, "Cancel");
    await page.locator("#state").getByText("An API key is needed").waitFor();
    await press(page, "Apply");
    await seeDialog(page);
    await page.keyboard.press("Escape");
    await page.locator(".problem").getByRole("heading", { name: "An API key is needed" }).waitFor();
    await press(page, "Key…");
    await giveKey(page, EDIT_KEY);
    await page.locator("#state").getByText("Model: ").waitFor();
    await press(page, "Key…");
    await press(page, "Forget the key");
    await seeDialog(page);
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  };
  await visit(browser, URL_, tour, { statuses });
});

test("the live view says that it needs the scope admin", async () => {
  const tour = async (page) => {
    await seeDialog(page);
    await giveKey(page, EDIT_KEY);
    await page.locator("#state").getByText("Model: ").waitFor();
    await page.getByRole("tab", { name: "Live" }).click();
    await page.locator("#live").getByText("a key with the scope admin").waitFor();
    await checkAccessible(page);
    await press(page, "Use another key");
    await giveKey(page, ADMIN_KEY);
    await page.locator("#figure-rate").waitFor();
    assert.equal(await page.locator("#live .problem").count(), 0);
  };
  await visit(browser, URL_, tour, { statuses });
});

test("the root path without its slash leads to the page", async () => {
  const tour = async (page) => {
    await seeDialog(page);
    assert.equal(page.url(), URL_);
  };
  await visit(browser, KEYED_URL, tour, { statuses });
});

test("the description of the API asks for a key and calls below the root path", async () => {
  const tour = async (page) => {
    await seeDialog(page);
    await giveKey(page, EDIT_KEY);
    await page
      .getByRole("button", { name: /^get \/v1\/models/i })
      .first()
      .click();
    await press(page, "Try it out");
    const asked = page.waitForRequest((request) => request.url() === `${KEYED_URL}/v1/models`);
    await press(page, "Execute");
    assert.equal((await (await asked).response()).status(), 200);
  };
  await visit(browser, `${URL_}docs`, tour, { statuses });
});
