// The main scenarios in Firefox. The tests control Firefox with the protocol WebDriver BiDi.

import { strict as assert } from "node:assert";
import { join } from "node:path";
import { test } from "node:test";
import puppeteer from "puppeteer-core";
import { patience } from "../../tools/patience.mjs";
import { owner, pressWhenLoaded, results, scenarioLimit, world } from "./harness.js";

const dark = { "layout.css.prefers-color-scheme.content-override": 0 };

/** launch starts Firefox with additional preferences, which are named as in about:config. */
const launch = (preferences = {}) =>
  puppeteer.launch({
    browser: "firefox",
    timeout: patience,
    protocolTimeout: patience,
    defaultViewport: { width: 1280, height: 900 },
    executablePath: process.env.ROLECALL_TEST_FIREFOX || "/usr/bin/firefox-esr",
    extraPrefsFirefox: { "intl.accept_languages": "en", "ui.prefersReducedMotion": 1, ...preferences },
  });
world.launch = () => launch();

/**
 * scenario runs play as a test, with a page that shares no cookies with other tests. The test
 * also fails if a script throws an error or if a response has status 500 or higher.
 */
function scenario(name, play, preferences) {
  test(`in Firefox, ${name}`, { timeout: scenarioLimit }, async () => {
    const browser = preferences ? await launch(preferences) : world.browser;
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patience);
    pressWhenLoaded(page, () => page.waitForFunction(() => document.readyState === "complete"));
    const faults = [];
    page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
    page.on("console", (message) => {
      if (/Content-Security-Policy/.test(message.text())) faults.push(message.text());
    });
    page.on("response", (r) => {
      if (r.status() >= 500) faults.push(`${r.status()} ${r.url()}`);
      if (/^https?:/.test(r.url()) && !r.url().startsWith(world.base)) faults.push(`asked ${r.url()}`);
    });
    try {
      await play(page);
      assert.deepEqual(faults, []);
    } catch (failure) {
      await page.screenshot({ path: join(results, `firefox-${name.replaceAll(/\W+/g, "-")}.png`) });
      throw failure;
    } finally {
      await (preferences ? browser.close() : context.close());
    }
  });
}

const go = (page, path) => page.goto(`${world.base}/console/demo${path}`);
const click = (page, selector) => page.locator(selector).click();
const says = (page, text) => page.waitForSelector(`::-p-text(${text})`);
const at = (page, pattern) => page.waitForFunction((source) => new RegExp(source).test(location.href), {}, pattern.source);
const focused = (page, selector) => page.waitForFunction((it) => document.activeElement?.matches(it), {}, selector);
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent.trim()));

/** press presses the keys one after the other. */
async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

async function signIn(page) {
  await go(page, "/sign-in");
  await page.locator("input[name=email]").fill(owner);
  await page.locator("input[name=password]").fill(world.password);
  await press(page, "Enter");
  await at(page, /\/home$/);
  await go(page, "/users");
}

/** open searches the list of users for the name and opens the page of the user. */
async function open(page, name) {
  await go(page, `/users?q=${encodeURIComponent(name)}`);
  await click(page, `tbody a ::-p-text(${name})`);
  await page.waitForSelector(`h1 ::-p-text(${name})`);
}

scenario("a wrong password is refused, the right one signs in, and sign-out ends the session", async (page) => {
  await go(page, "/sign-in");
  await page.locator("input[name=email]").fill(owner);
  await page.locator("input[name=password]").fill("not the password");
  await press(page, "Enter");
  await says(page, "The email address or the password is wrong");
  await signIn(page);
  await click(page, "::-p-aria(Sign out)");
  await at(page, /sign-in/);
  await go(page, "/users");
  await at(page, /sign-in/);
});

scenario("the list of users is searched and opened with the keyboard", async (page) => {
  await signIn(page);
  await press(page, "/");
  await focused(page, "#q");
  await page.keyboard.type("zoe pe");
  await at(page, /q=zoe\+pe$/);
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  assert.deepEqual(await texts(page, "tbody th bdi:not(.unseen bdi)"), ["Zoë Perlman"]);
  await press(page, "Escape");
  assert.equal(await page.$eval("#q", (field) => field.value), "zoe pe"); // Escape leaves the field, and keeps the list
  await press(page, "j");
  await focused(page, "[data-row]");
  await press(page, "Enter");
  await page.waitForSelector("h1 ::-p-text(Zoë Perlman)");
  await page.keyboard.type("gr"); // at once, because the page forgets the first key after a time
  await at(page, /\/roles$/);
  await press(page, "?");
  await page.waitForSelector("#shortcuts[open]");
  await press(page, "Escape");
  await page.waitForSelector("#shortcuts:not([open])");
});

scenario("a user is created, gets a role, and loses it, and the removal is undone", async (page) => {
  await signIn(page);
  await press(page, "c");
  await focused(page, "#field-name");
  await page.keyboard.type("Mary Keller");
  await press(page, "Tab");
  await page.keyboard.type("mary.keller@demo.example");
  await press(page, "Enter");
  await says(page, "We've emailed them an invitation.");
  await open(page, "Mary Keller");
  await click(page, "::-p-aria(Assign role)");
  await at(page, /roles\/give$/);
  await click(page, '::-p-aria([name="Assign Support agent"][role="link"])');
  await page.waitForSelector("dialog[open] form");
  await click(page, "dialog[open] button ::-p-text(Assign)");
  await says(page, "was assigned to");
  await click(page, '::-p-aria([name="Remove Support agent"][role="link"])');
  await page.waitForSelector("dialog[open] form");
  await click(page, "dialog[open] button.danger");
  await says(page, "was removed from");
  await click(page, ".toast-undo");
  await says(page, "was assigned to");
  assert.ok((await texts(page, ".table-held tbody tr")).some((row) => row.includes("Support agent")));
});

scenario("a role is edited, and the settings are changed", async (page) => {
  await signIn(page);
  await go(page, "/roles?q=support");
  await click(page, "tbody a ::-p-text(Support agent)");
  await page.waitForSelector("h1 ::-p-text(Support agent)");
  await press(page, "e");
  await at(page, /\/edit$/);
  await page.locator("input[name=name]").fill("Support lead");
  await press(page, "Enter");
  await page.waitForSelector("h1 ::-p-text(Support lead)");
  await page.keyboard.type("gs");
  await at(page, /\/settings$/);
  await press(page, "e");
  await at(page, /\/settings\/edit$/);
  await page.locator("input[name=displayName]").fill("Demo Limited");
  await press(page, "Enter");
  await at(page, /\/settings$/);
  await page.waitForSelector("main ::-p-text(Demo Limited)");
});

scenario("the dark theme has a dark ground and light text", async (page) => {
  await signIn(page);
  const light = async (property) => page.evaluate((name) => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    context.fillStyle = getComputedStyle(document.body)[name];
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
    return (r + g + b) / 3;
  }, property);
  assert.ok((await light("backgroundColor")) < 64 && (await light("color")) > 192);
}, dark);
