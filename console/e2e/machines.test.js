import { strict as assert } from "node:assert";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { call, checkAccess, checkWidth, chord, first, owner, person, scenario, setPassword, signIn, until, world } from "./harness.js";

const run = promisify(execFile);

/**
 * make creates a service account and assigns the role to it for the departments, or for the whole
 * tenant if departments is missing.
 */
async function make(page, name, roleName, departments) {
  const key = { "idempotency-key": name.replaceAll(" ", "-") };
  const { body: account } = await call(page, "POST", "/service-accounts", { name }, key);
  const role = await first(page, `/roles?q=${roleName}`);
  const given = await call(page, "PUT", `/service-accounts/${account.id}/roles/${role.id}`, departments ? { reach: { departments } } : {});
  assert.equal(given.status, 201, JSON.stringify(given.body));
  return account;
}

/** ask sends a request to the API with the token. */
async function ask(token, path) {
  const answer = await fetch(world.base + path, { headers: { authorization: `Bearer ${token}`, "x-tenant-schema": "demo" } });
  return { status: answer.status, body: await answer.json() };
}

/** self returns the signed-in user. */
async function self(page) {
  return (await call(page, "GET", "/auths/session")).body.user;
}

scenario("a service account gets a role in one department and a token using only the keyboard", async (page) => {
  await signIn(page);
  await chord(page, "g", "m");
  await page.waitForURL(/service-accounts$/);
  await page.getByRole("heading", { name: "Service accounts" }).waitFor();
  await page.keyboard.press("c");
  await page.waitForURL(/service-accounts\/create$/);
  await page.locator("input[name=name]:focus").waitFor();
  await page.keyboard.type("Nightly import");
  await page.keyboard.press("Tab");
  await page.keyboard.type("Brings people from the payroll.");
  await page.keyboard.press("Enter");
  await page.getByText("Assign it a role, then create a token.").waitFor();

  await page.getByRole("link", { name: "Assign role" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/roles\/give$/);
  await page.keyboard.press("/");
  await page.keyboard.type("support", { delay: 20 });
  await page.waitForURL(/q=support$/);
  await page.getByRole("link", { name: "Assign Support agent" }).focus();
  await page.keyboard.press("Enter");
  const form = page.getByRole("dialog");
  await form.getByLabel("Users in certain departments").focus();
  await page.keyboard.press("Space");
  await form.getByRole("textbox", { name: "Departments" }).focus();
  await page.keyboard.type("Sales");
  await form.getByRole("button", { name: "Assign" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Support agent was assigned to Nightly import.").waitFor();
  await page.getByText("In Sales").first().waitFor();

  await page.keyboard.press("t");
  await page.waitForURL(/tokens\/create$/);
  await page.locator("input[name=name]:focus").waitFor();
  await page.keyboard.type("Production");
  await page.getByRole("checkbox", { name: "users:read" }).focus();
  await page.keyboard.press("Space");
  await checkAccess(page);
  await page.keyboard.press("Enter");
  const secret = page.locator(".secret code");
  await secret.waitFor();
  const token = await secret.innerText();
  assert.match(token, /^rc_\S{40,}$/);
  assert.ok(!page.url().includes("rc_"));
  await checkAccess(page);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy token" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), token);

  const people = await ask(token, "/users?limit=200");
  assert.equal(people.status, 200);
  assert.ok(people.body.items.length > 0);
  assert.deepEqual([...new Set(people.body.items.map((u) => u.department))], ["Sales"]);
  await page.getByRole("link", { name: "I've copied it" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/tokens$/);
  await page.goBack(); // leads to the form, not to the page with the token
  await page.getByRole("button", { name: "Create", exact: true }).waitFor();
  assert.ok(!(await page.content()).includes("rc_"));
  await page.goForward();
  await page.waitForURL(/tokens$/);
  const row = page.locator("tbody tr", { hasText: "Production" });
  assert.equal(await row.count(), 1);
  await until(async () => {
    await page.reload();
    return /just now/.test(await row.locator("td").nth(1).innerText());
  });
  await row.getByRole("link", { name: "Revoke Production" }).focus();
  await page.keyboard.press("Enter");
  await form.getByText("Programs can no longer use this token").waitFor();
  await form.getByRole("button", { name: "Revoke" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Token revoked.").waitFor();
  assert.equal((await ask(token, "/users?limit=1")).status, 401);
});

scenario("a service account is searched, edited during a conflict, suspended, resumed and deleted", async (page) => {
  await signIn(page);
  const account = await make(page, "Zebra back end", "viewer");
  const { body: made } = await call(page, "POST", `/service-accounts/${account.id}/tokens`, { name: "Shop", permissions: ["users:read"], expiresAt: new Date(Date.now() + 3600_000).toISOString() }, { "idempotency-key": "zebra" });
  await page.goto("/console/demo/service-accounts");
  await page.keyboard.press("/");
  await page.keyboard.type("zeb", { delay: 20 });
  await page.waitForURL(/q=zeb$/);
  await page.getByRole("status").filter({ hasText: "1 service account" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(account.id));
  await page.getByText("Expires soon").waitFor();

  const form = page.getByRole("dialog");
  await page.keyboard.press("e");
  await form.getByRole("textbox", { name: "Name" }).fill("Zebra");
  await call(page, "PATCH", `/service-accounts/${account.id}`, { name: "Zebra shop", description: "Sells stripes." });
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByText("Currently saved: Zebra shop").waitFor();
  assert.equal(await form.getByLabel("Purpose").inputValue(), "Sells stripes.");
  await form.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();

  assert.equal((await ask(made.token, "/users?limit=1")).status, 200);
  await page.getByText("More", { exact: true }).click();
  await page.getByRole("link", { name: "Suspend" }).click();
  await form.getByText("Its tokens stop working immediately").waitFor();
  await form.getByLabel("Reason").fill("sells spots");
  await form.getByRole("button", { name: "Suspend" }).click();
  await page.getByText("Suspended. Its tokens don't work.").waitFor();
  assert.equal((await ask(made.token, "/users?limit=1")).status, 401);
  await page.getByText("More", { exact: true }).click();
  await page.getByRole("link", { name: "Resume" }).click();
  await form.getByRole("button", { name: "Resume" }).click();
  await page.getByText("was resumed.").waitFor();
  assert.equal((await ask(made.token, "/users?limit=1")).status, 200);
  await page.getByText("More", { exact: true }).click();
  await page.getByRole("link", { name: "Delete" }).click();
  await form.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Service account and its tokens deleted.").waitFor();
  assert.equal((await ask(made.token, "/users?limit=1")).status, 401);
});

scenario("a user creates their own token, and errors appear next to the fields", async (page) => {
  await signIn(page);
  const user = await self(page);
  await page.goto("/console/demo/account");
  await page.getByRole("link", { name: "New token" }).click();
  await page.waitForURL(/tokens\/create$/);
  await page.getByRole("textbox", { name: "Name" }).fill("Laptop");
  await page.getByLabel("Expires").fill("2099-01-01T00:00");
  await page.getByRole("checkbox", { name: "users:read", exact: false }).first().check();
  await page.getByLabel("Other permissions").fill("shop/tills:close");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Must be at most 366 days from now.").waitFor();
  assert.equal(await page.getByLabel("Other permissions").inputValue(), "shop/tills:close");
  assert.ok(await page.getByRole("checkbox", { name: "users:read", exact: false }).first().isChecked());
  const end = new Date(Date.now() + 60 * 864e5).toISOString().slice(0, 16);
  await page.getByLabel("Expires").fill(end);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const token = await page.locator(".secret code").innerText();
  const usage = await page.locator(".example").first().innerText();
  const shown = await run("sh", ["-c", usage.replace("paste the token here", token).replace("curl ", "curl -sS --noproxy '*' ")]);
  assert.equal(JSON.parse(shown.stdout).user.email, owner);
  const session = await ask(token, "/auths/session");
  assert.equal(session.status, 200);
  assert.equal(session.body.user.email, owner);
  await page.goto(`/console/demo/users/${user.id}`);
  await page.getByRole("link", { name: "1 token" }).click();
  await page.getByRole("link", { name: "Revoke Laptop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("Token revoked.").waitFor();
  assert.equal((await ask(token, "/auths/session")).status, 401);
});

scenario("an administrator can view and revoke tokens of another user, but not create any", async (page) => {
  await signIn(page);
  const user = await person(page, "barbara.hopper@demo.example");
  const viewer = await first(page, "/roles?key=viewer");
  await call(page, "PUT", `/users/${user.id}/roles/${viewer.id}`, {});
  const theirs = await setPassword("barbara.hopper@demo.example");
  await page.context().clearCookies();
  await signIn(page, "barbara.hopper@demo.example", theirs);
  const { body: made } = await call(page, "POST", `/users/${user.id}/tokens`, { name: "Spreadsheet", permissions: ["users:read"], expiresAt: new Date(Date.now() + 864e6).toISOString() }, { "idempotency-key": "sheet" });
  await page.context().clearCookies();
  await signIn(page);
  await page.goto(`/console/demo/users/${user.id}`);
  await page.getByRole("link", { name: "1 token" }).click();
  await page.getByRole("heading", { name: "API tokens" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "New token" }).count(), 0);
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 844 });
    await checkWidth(page);
    await checkAccess(page);
  }
  await page.getByRole("link", { name: "Revoke Spreadsheet" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("Token revoked.").waitFor();
  assert.equal((await ask(made.token, "/auths/session")).status, 401);
});

scenario("the new secret of a webhook is shown in the dialog that rotates it", async (page) => {
  await signIn(page);
  const account = await make(page, "Receiver", "viewer");
  const { body: hook } = await call(page, "POST", "/webhooks", { url: "https://hooks.example.com/rotated", serviceAccountId: account.id }, { "idempotency-key": "rotated" });
  await page.goto(`/console/demo/webhooks/${hook.id}`);
  await page.getByText("More", { exact: true }).click();
  await page.getByRole("link", { name: "Rotate secret" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Rotate secret" }).click();
  const secret = await dialog.locator(".secret code").innerText();
  assert.match(secret, /^whsec_/);
  assert.notEqual(secret, hook.secret);
  await dialog.getByRole("button", { name: "Copy secret" }).waitFor();
  await checkAccess(page);
  await dialog.getByRole("link", { name: "Show the webhook" }).click();
  await page.getByText("You rotated the secret of a webhook").waitFor();
});

scenario("without JavaScript, a token is created once, and a reload doesn't show it again", async (page) => {
  await signIn(page);
  const { body: session } = await call(page, "GET", "/auths/session");
  await page.goto(`/console/demo/users/${session.user.id}/tokens/create`);
  await page.getByRole("textbox", { name: "Name" }).fill("Plain");
  await page.getByRole("checkbox", { name: "users:read", exact: false }).first().check();
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const token = await page.locator(".secret code").innerText();
  assert.equal((await ask(token, "/auths/session")).status, 200);
  await page.reload(); // sends the form again
  await page.getByText("This token was already created").waitFor();
  assert.ok(!(await page.content()).includes(token));
  await page.getByRole("link", { name: "Go to the tokens" }).click();
  assert.equal(await page.locator("tbody tr", { hasText: "Plain" }).count(), 1);
}, { javaScriptEnabled: false });

scenario("the form for a new token asks for the password after a while and keeps the entered values", async (page) => {
  await signIn(page);
  const account = await make(page, "Careful", "viewer");
  const { status } = await call(page, "PATCH", "/tenant", { settings: { reauthenticationSeconds: 1 } });
  assert.equal(status, 200);
  const password = page.getByLabel("Your password");
  await until(async () => {
    await page.goto(`/console/demo/service-accounts/${account.id}/tokens/create`);
    return (await password.count()) > 0;
  });
  await page.getByRole("textbox", { name: "Name" }).fill("Kept");
  await page.getByRole("checkbox", { name: "users:read", exact: false }).first().check();
  await password.fill("not the password");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.locator(".fault").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Name" }).inputValue(), "Kept");
  assert.ok(await page.getByRole("checkbox", { name: "users:read", exact: false }).first().isChecked());
  await password.fill(world.password);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  assert.equal((await ask(await page.locator(".secret code").innerText(), "/users?limit=1")).status, 200);
});
