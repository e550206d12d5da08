import { strict as assert } from "node:assert";
import { call, enter, person, scenario, signIn, signedIn, owner, world } from "./harness.js";

/** zoneCookie returns the time zone in the cookie that tells the server the zone of the browser. */
const zoneCookie = async (page) => (await page.context().cookies(`${world.base}/console/`)).find((cookie) => cookie.name === "rolecall_time_zone")?.value;

/** loads returns an object whose member pages counts the pages that the browser loads from now on. */
function loads(page) {
  const count = { pages: 0 };
  page.on("load", () => count.pages++);
  return count;
}

/** inZone returns the time iso in the time zone, in the format of the console without the zone. */
function inZone(iso, timeZone) {
  const format = new Intl.DateTimeFormat("en-US", { timeZone, day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const part = Object.fromEntries(format.formatToParts(new Date(iso)).map(({ type, value }) => [type, value]));
  return `${part.day} ${part.month} ${part.year}, ${part.hour}:${part.minute}`;
}

scenario("a new reader sees times in their own zone, without a second load", async (page) => {
  const count = loads(page);
  await enter(page, owner, world.password);
  await signedIn(page);
  await page.waitForLoadState();
  assert.equal(count.pages, 2); // the sign-in, and the page after it
  assert.equal(await zoneCookie(page), "Africa/Nairobi");
  await page.goto("/console/demo/events");
  assert.equal(count.pages, 3);
  const time = page.locator(".event-time").first();
  const iso = await time.getAttribute("datetime");
  assert.equal(await time.innerText(), inZone(iso, "Africa/Nairobi").slice(-5));
  assert.match(await time.getAttribute("title"), /^\w+, \d+ \w+ \d{4}, \d\d:\d\d:\d\d EAT \(Africa\/Nairobi\) = \d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC$/);
  await page.getByText("Time zone: Africa/Nairobi", { exact: true }).waitFor();
  await page.getByLabel("Before").fill("2000-01-01");
  await page.waitForURL(/\?timeZone=Africa%2FNairobi&to=2000-01-01$/);
}, { timezoneId: "Africa/Nairobi" });

scenario("an end is read in the zone of the reader", async (page) => {
  await signIn(page);
  const user = await person(page, "barbara.liskov@demo.example");
  const { body: role } = await call(page, "POST", "/roles", { name: "Zoned", permissions: ["users:read"] }, { "idempotency-key": "zoned" });
  await page.goto(`/console/demo/users/${user.id}/roles/${role.id}`);
  await page.getByLabel("Expires").fill("2099-07-01T18:00");
  await page.getByText("Time zone: America/New_York", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Assign", exact: true }).click();
  await page.getByText("1 Jul 2099, 18:00 EDT").first().waitFor();
  const { body } = await call(page, "GET", `/users/${user.id}/roles`);
  assert.equal(body.items.find((held) => held.role.id === role.id).expiresAt, "2099-07-01T22:00:00.000000Z");
}, { timezoneId: "America/New_York" });

scenario("a reader who travels sees the new zone after one more load, and never an answer twice", async (page) => {
  const browser = await page.context().newCDPSession(page);
  const travel = (timezoneId) => browser.send("Emulation.setTimezoneOverride", { timezoneId });
  await travel("Europe/Berlin");
  await signIn(page);
  await page.goto("/console/demo/events");
  await page.getByText("Time zone: Europe/Berlin", { exact: true }).waitFor();

  await travel("Asia/Tokyo");
  const count = loads(page);
  await page.reload();
  await page.getByText("Time zone: Asia/Tokyo", { exact: true }).waitFor();
  await page.goto("/console/demo/events");
  await page.goto("/console/demo/users");
  assert.ok(count.pages <= 4, `${count.pages} loads`); // the browser can leave the reloaded page before it is complete
  const before = count.pages;
  await page.goto("/console/demo/events");
  assert.equal(count.pages, before + 1);

  const { body: self } = await call(page, "GET", "/auths/session");
  await page.goto(`/console/demo/users/${self.user.id}/tokens/create`);
  await page.getByRole("textbox", { name: "Name" }).fill("Zoned");
  await page.locator("input[name=permissions]").first().check();
  await travel("Europe/Paris");
  await page.getByRole("button", { name: "Create" }).click();
  await page.locator(".secret").waitFor();
  await page.waitForLoadState("networkidle");
  assert.match(await page.locator(".secret code").innerText(), /\w{20}/);
  assert.match(await page.locator("dl time").innerText(), / JST$/);
  assert.equal(await zoneCookie(page), "Europe/Paris");
  await page.goto("/console/demo/events");
  await page.getByText("Time zone: Europe/Paris", { exact: true }).waitFor();
}, { timezoneId: undefined });

scenario("a zone that the server does not know causes no loop", async (page) => {
  await page.addInitScript(() => {
    const original = Intl.DateTimeFormat.prototype.resolvedOptions;
    Intl.DateTimeFormat.prototype.resolvedOptions = function () {
      return { ...original.call(this), timeZone: "Moon/Tycho" };
    };
  });
  await signIn(page);
  const count = loads(page);
  await page.goto("/console/demo/events");
  await page.getByText("Time zone: UTC", { exact: true }).waitFor();
  await page.goto("/console/demo/events");
  assert.equal(count.pages, 2);
});

scenario("without scripts, times are in UTC and say so", async (page) => {
  await page.goto("/console/demo/sign-in");
  await page.getByLabel("Email").fill(owner);
  await page.getByLabel("Password").fill(world.password);
  await page.keyboard.press("Enter");
  await signedIn(page);
  await page.goto("/console/demo/events");
  await page.getByText("Time zone: UTC", { exact: true }).waitFor();
  const time = page.locator(".event-time").first();
  assert.equal(await time.innerText(), inZone(await time.getAttribute("datetime"), "UTC").slice(-5));
}, { javaScriptEnabled: false, timezoneId: "Africa/Nairobi" });
