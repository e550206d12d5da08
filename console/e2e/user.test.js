import { strict as assert } from "node:assert";
import { call, focused, person, scenario, signIn, until, world } from "./harness.js";

/** open opens the page of the user with the email address. It returns the user. */
async function open(page, email) {
  const user = await person(page, email);
  await page.goto(`/console/demo/users/${user.id}`);
  return user;
}

scenario("the page of a user shows their sign-in status, permissions with the roles that give them, and events", async (page) => {
  await signIn(page);
  await open(page, "ada.lovelace@demo.example");
  const text = await page.locator("main").innerText();
  for (const expected of ["Ada Lovelace", "Can sign in", "Owner", "*:*", "Everywhere", "From", "You signed in"]) assert.ok(text.includes(expected), expected);
});

scenario("a user is suspended with a reason, which their page shows, and resumed", async (page) => {
  await signIn(page);
  const user = await open(page, "frances.allen@demo.example");
  await page.locator(".actions .menu summary").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Suspend" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await focused(page, "Cancel");
  await page.getByLabel("Reason").focus();
  await page.keyboard.type("left the company");
  await page.keyboard.press("Enter"); // moves to the button
  await page.keyboard.press("Enter");
  await page.getByText("Frances Allen was suspended and signed out everywhere.").waitFor();
  assert.ok(!page.url().includes("done="));
  const text = await page.locator("main").innerText();
  assert.match(text, /Can't sign in/);
  assert.match(text, /left the company/);
  await page.locator(".verdict").getByRole("link", { name: "Resume" }).click(); // the button that resolves the reason is next to it
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await page.getByText("Frances Allen was resumed.").waitFor();
  const { body } = await call(page, "GET", `/users/${user.id}`);
  assert.equal(body.status, "active");
});

scenario("a refused action shows the error in its dialog", async (page) => {
  await signIn(page);
  await open(page, "ada.lovelace@demo.example");
  await page.locator(".actions .menu summary").click();
  await page.getByRole("link", { name: "Suspend" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
  const alert = page.getByRole("dialog").getByRole("alert");
  assert.match(await alert.innerText(), /Last owner.*Assign the owner role in this way to another user first.*Request\s+[0-9a-f-]{36}/s);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.locator(".actions .menu summary:focus").waitFor(); // the focus returns to the element that opened the menu
});

scenario("the deletion of a user asks for the password after a while", async (page) => {
  await signIn(page);
  const user = await open(page, "donald.knuth@demo.example");
  const changed = await call(page, "PATCH", "/tenant", { settings: { reauthenticationSeconds: 1 } });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  const password = page.getByLabel("Your password");
  await until(async () => {
    await page.goto(`/console/demo/users/${user.id}/delete`);
    return (await password.count()) > 0;
  });
  await password.fill("not the password");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.locator(".fault").waitFor();
  await page.getByLabel("Your password").fill(world.password);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("User deleted. They can be restored").waitFor();
  assert.equal((await call(page, "GET", `/users/${user.id}`)).status, 404);
});

scenario("the edit form shows errors next to the fields and the value that another user saved", async (page) => {
  await signIn(page);
  const user = await open(page, "tony.allen@demo.example");
  await page.getByRole("link", { name: "Edit" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("x");
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByText("Must have 3 to 255 characters.").waitFor();
  await focused(page, "name");
  await call(page, "PATCH", `/users/${user.id}`, { name: "Antony Allen" });
  await form.getByLabel("Name").fill("Toni Allen");
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByText("Currently saved: Antony Allen").waitFor();
  await form.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  assert.equal(await page.locator("h1 bdi").innerText(), "Toni Allen");
});

scenario("a session is ended from the list of sessions", async (page) => {
  await signIn(page);
  const user = await open(page, "ada.lovelace@demo.example");
  await fetch(`${world.base}/auths/login`, { method: "POST", headers: { "x-tenant-schema": "demo", "content-type": "application/json", "user-agent": "Mozilla/5.0 (Windows) Firefox/130" }, body: JSON.stringify({ email: user.email, password: world.password }) });
  await page.goto(`/console/demo/users/${user.id}/sessions`);
  const other = page.locator("tbody tr", { hasText: "Firefox on Windows" }).first();
  await other.getByRole("link", { name: "End" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End session" }).click();
  await page.getByText("Session ended.").waitFor();
  assert.equal(await page.locator("tbody tr", { hasText: "Firefox on Windows" }).count(), 0);
});

scenario("unknown users and unknown addresses show error pages", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users/019e457a-76f0-7000-b058-082df8f37eff");
  assert.match(await page.locator("main").innerText(), /Not found.*Request/s);
  await page.goto("/console/demo/nowhere");
  assert.match(await page.locator("main").innerText(), /no page at this address/);
});

scenario("a form from another origin is refused", async (page) => {
  await signIn(page);
  const user = await open(page, "dennis.ritchie@demo.example");
  const cookies = (await page.context().cookies()).map((c) => `${c.name}=${c.value}`).join("; ");
  for (const origin of ["https://evil.example", "null", `${world.base}.evil.example`]) {
    const answer = await fetch(`${world.base}/console/demo/users/${user.id}/suspend`, { method: "POST", headers: { cookie: cookies, origin, "sec-fetch-site": "cross-site", "content-type": "application/x-www-form-urlencoded" }, body: "reason=x" });
    assert.equal(answer.status, 403);
  }
  const { body } = await call(page, "GET", `/users/${user.id}`);
  assert.notEqual(body.status, "suspended");
});
