import { strict as assert } from "node:assert";
import { call, mailLink, scenario, signIn, world } from "./harness.js";

/** named returns the user of the demo who has the address. */
async function named(page, email) {
  const { body } = await call(page, "GET", `/users?email=${encodeURIComponent(email)}`);
  return body.items[0];
}

/** newcomer makes a user, and opens their page. */
async function newcomer(page, email, members = {}) {
  const { body } = await call(page, "POST", "/users", { email, name: "Radia Joy Perlman", ...members }, { "idempotency-key": email });
  await page.goto(`/console/demo/users/${body.id}`);
  return body;
}

scenario("a colleague is invited and given a role by the keyboard alone, and signs in", async (page) => {
  const email = "mary.keller@demo.example";
  await signIn(page);
  await page.keyboard.press("c");
  const form = page.getByRole("dialog");
  await form.waitFor();
  await page.locator("#field-name:focus").waitFor();
  await page.keyboard.type("Mary Keller");
  await page.keyboard.press("Tab");
  await page.keyboard.type(email);
  await page.keyboard.press("Tab");
  await page.keyboard.type("Sales");
  await page.keyboard.press("Enter");
  await page.getByText(" is created, and the invitation is on its way.").waitFor();
  assert.match(await page.locator("main").innerText(), /Mary Keller.*Holds no role/s);
  await page.getByRole("link", { name: "Give a role" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/roles\/give$/);
  await page.getByRole("link", { name: "Give Support agent" }).focus();
  await page.keyboard.press("Enter");
  await form.waitFor();
  await form.getByLabel("For the users of some departments").check();
  await form.getByRole("group", { name: "Departments" }).getByLabel("Sales").focus();
  await page.keyboard.press("Space");
  await form.getByRole("button", { name: "Give" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText(/ is given to /).waitFor();
  assert.match(await page.locator("main").innerText(), /Support agent\s+In Sales/);

  await page.context().clearCookies();
  await page.goto(await mailLink(email, "invitation"));
  await page.getByLabel("New password").fill("a long enough password of hers");
  await page.getByRole("button", { name: "Accept and sign in" }).click();
  await page.waitForURL(/\/users/);
  assert.match(await page.locator("main").innerText(), /Grace Hopper/);
});

scenario("an address that another has is said at the field, and nobody is made", async (page) => {
  await signIn(page);
  await page.getByRole("link", { name: "New user" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("Ada the second");
  await form.getByLabel("E-mail address").fill("Ada.Lovelace@demo.example");
  await form.getByRole("button", { name: "Create" }).click();
  await form.getByText("Another user of this tenant has this address.").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.name), "email");
  await form.getByText("External id and metadata").click();
  await form.getByLabel("Key").first().fill("floor");
  await form.getByLabel("Value").first().fill("=HYPERLINK(\"http://evil\")");
  await form.getByRole("button", { name: "Add a row" }).click();
  await page.keyboard.type("site");
  await form.getByLabel("E-mail address").fill("ada.two@demo.example");
  await form.getByLabel("Mail them an invitation").uncheck();
  await form.getByRole("button", { name: "Create" }).click();
  await page.getByText(/ is created\./).waitFor();
  assert.deepEqual((await named(page, "ada.two@demo.example")).metadata, { floor: "=HYPERLINK(\"http://evil\")", site: "" });
});

scenario("metadata is changed row by row, and what somebody else has changed stands beside it", async (page) => {
  await signIn(page);
  const user = await newcomer(page, "radia.rows@demo.example", { metadata: { floor: "3", site: "Bonn", team: "net" } });
  await page.getByRole("link", { name: "Edit" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("floor", { exact: true }).fill("4");
  await form.getByRole("button", { name: "Remove site" }).click();
  await form.getByRole("button", { name: "Add a row" }).click();
  await page.keyboard.type("desk");
  await page.keyboard.press("Tab");
  await page.keyboard.type("12");
  await call(page, "PATCH", `/users/${user.id}`, { metadata: { floor: "5", team: "web" } });
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByText("Saved meanwhile: 5").waitFor();
  assert.equal(await form.getByLabel("team", { exact: true }).inputValue(), "web");
  await form.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const { body } = await call(page, "GET", `/users/${user.id}`);
  assert.deepEqual(body.metadata, { desk: "12", floor: "4", team: "web" });
});

scenario("metadata has spare rows where no script adds them", async (page) => {
  await page.goto("/console/demo/sign-in");
  await page.getByLabel("E-mail address").fill("ada.lovelace@demo.example");
  await page.getByLabel("Password").fill(world.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("link", { name: "New user" }).click();
  await page.waitForURL(/users\/create$/);
  await page.getByLabel("Name").fill("Plain Jane");
  await page.getByLabel("E-mail address").fill("plain.jane@demo.example");
  await page.getByText("External id and metadata").click();
  assert.equal(await page.getByRole("button", { name: "Add a row" }).count(), 0);
  await page.getByLabel("Key").nth(3).fill("floor");
  await page.getByLabel("Value").nth(3).fill("7");
  await page.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/users\/[0-9a-f-]{36}/);
  assert.match(await page.locator("main").innerText(), /floor 7/);
}, { javaScriptEnabled: false });

scenario("an address is changed by the link that goes to the new one", async (page) => {
  await signIn(page);
  const user = await newcomer(page, "radia.old@demo.example");
  await page.locator(".menu summary").click();
  await page.getByRole("link", { name: "Change the address" }).click();
  const form = page.getByRole("dialog");
  assert.match(await form.innerText(), /A link goes to the new address.*the old address stays/s);
  await form.getByLabel("New e-mail address").fill("radia.new@demo.example");
  await page.keyboard.press("Enter");
  await page.getByText("The new address is asked.").waitFor();
  assert.equal((await call(page, "GET", `/users/${user.id}`)).body.email, "radia.old@demo.example");
  await page.goto(await mailLink("radia.new@demo.example", "email-change"));
  await page.getByRole("button").first().click();
  await page.getByText("Your new address is confirmed.").waitFor();
  assert.equal((await call(page, "GET", `/users/${user.id}`)).body.email, "radia.new@demo.example");
});
