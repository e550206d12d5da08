import { strict as assert } from "node:assert";
import { call, checkAccess, checkWidth, person, scenario, signIn, until, world } from "./harness.js";

/** scim sends a request of a directory with the token. */
async function scim(token, method, path, body) {
  const answer = await fetch(`${world.base}/scim/v2/demo${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/scim+json" }) },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, body: text && JSON.parse(text) };
}

/** newUser is a user as an identity provider sends it. */
const newUser = (userName) => ({ schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"], userName, displayName: "Katherine Johnson", active: true });

/** press submits the form in the dialog with the button. */
const press = (page, name) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click();

scenario("a directory is created, its token sends requests, and it is paused, resumed and deleted", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/settings");
  await page.getByRole("link", { name: "Directories", exact: true }).click();
  await page.getByText("No directories").waitFor();
  await page.getByRole("link", { name: "New directory" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Acme Entra");
  await page.getByLabel("Take them over by their address").check();
  await checkAccess(page);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Directory Acme Entra created.").waitFor();
  const address = page.url().replace(/\?.*/, "");
  const base = `${world.base}/scim/v2/demo`;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy the base URL" }).click();
  await page.getByText("Copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), base);
  await page.getByText("Microsoft Entra ID", { exact: true }).click();
  await page.getByText("as Tenant URL").waitFor();

  await page.getByRole("link", { name: "Create a token" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Entra 2026");
  const end = new Date(`${await page.getByLabel("Expires").inputValue()}Z`);
  assert.ok(Math.abs(end - Date.now() - 365 * 864e5) < 864e5, end);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const token = await page.locator(".secret code").innerText();
  assert.match(token, /^rd_\S{40,}$/);
  assert.ok(!page.url().includes("rd_"));
  await checkAccess(page);
  await page.getByRole("button", { name: "Copy token" }).click();
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === token);
  await page.getByRole("link", { name: "I've copied it" }).click();
  await page.getByText("Not used yet").waitFor();
  assert.ok(!(await page.content()).includes("rd_"));

  const created = await scim(token, "POST", "/Users", newUser("katherine@acme.example"));
  assert.equal(created.status, 201, JSON.stringify(created.body));
  assert.equal((await scim(token, "POST", "/Users", newUser("katherine@acme.example"))).status, 409);
  const requests = page.getByRole("region", { name: "Last requests" });
  await until(async () => {
    await page.reload();
    return (await requests.getByRole("row", { name: "POST /Users" }).count()) === 2;
  });
  const [newest, oldest] = await requests.locator("tbody tr").allInnerTexts();
  assert.match(newest, /POST \/Users[\s\S]*409[\s\S]*\w+ \w+/);
  assert.match(oldest, /POST \/Users[\s\S]*201/);
  await page.getByText("1 user", { exact: true }).waitFor();
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 844 });
    await checkWidth(page);
    await checkAccess(page);
  }
  await page.getByRole("link", { name: "All last requests" }).click();
  await page.getByRole("row", { name: "POST /Users" }).first().waitFor();

  await page.goto(address);
  await page.getByRole("link", { name: "Pause" }).click();
  await press(page, "Pause");
  await page.getByText("This directory is paused.").waitFor();
  await checkAccess(page);
  assert.equal((await scim(token, "GET", "/Users")).status, 503);
  await page.getByRole("link", { name: "Resume" }).click();
  await press(page, "Resume");
  await page.getByText("Directory Acme Entra resumed.").waitFor();
  assert.equal(await page.getByText("This directory is paused.").count(), 0);
  assert.equal((await scim(token, "GET", "/Users")).body.totalResults, 1);

  await page.getByRole("link", { name: "Revoke Entra 2026" }).click();
  await press(page, "Revoke");
  await page.getByText("Token revoked.").waitFor();
  assert.equal((await scim(token, "GET", "/Users")).status, 401);

  await page.getByRole("link", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByText("1 user and 0 groups remain").waitFor();
  await press(page, "Delete");
  await page.getByText("Directory deleted.").waitFor();
  await page.getByText("No directories").waitFor();
  assert.equal((await person(page, "katherine@acme.example")).name, "Katherine Johnson");
});

scenario("two people edit a directory at the same time, and errors appear next to the fields", async (page) => {
  await signIn(page);
  for (const name of ["Acme Okta", "Acme JumpCloud"]) {
    assert.equal((await call(page, "POST", "/directories", { name }, { "idempotency-key": name.replace(" ", "-") })).status, 201);
  }
  await page.goto("/console/demo/directories");
  await page.getByRole("link", { name: "Acme Okta" }).click();
  await page.getByRole("heading", { name: "Acme Okta" }).waitFor();
  const id = page.url().match(/directories\/([^?]+)/)[1];
  await page.keyboard.press("e");
  await page.getByRole("textbox", { name: "Name" }).fill("Acme JumpCloud");
  await page.getByLabel("Delete them").check();
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".fault").waitFor();
  assert.ok(await page.getByLabel("Delete them").isChecked());
  await page.getByRole("textbox", { name: "Name" }).fill("Okta");
  assert.equal((await call(page, "PATCH", `/directories/${id}`, { name: "Acme Okta 2", matching: "email" })).status, 200);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Currently saved: Acme Okta 2").waitFor();
  assert.ok(await page.getByLabel("Take them over by their address").isChecked());
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const { body } = await call(page, "GET", `/directories/${id}`);
  assert.deepEqual([body.name, body.matching, body.deprovisioning], ["Okta", "email", "delete"]);
});

scenario("without JavaScript, a token of a directory is created once, and the form asks for the password after a while", async (page) => {
  await signIn(page);
  const { body: directory } = await call(page, "POST", "/directories", { name: "Acme OneLogin" }, { "idempotency-key": "onelogin" });
  assert.equal((await call(page, "PATCH", "/tenant", { settings: { reauthenticationSeconds: 1 } })).status, 200);
  const password = page.getByLabel("Your password");
  await until(async () => {
    await page.goto(`/console/demo/directories/${directory.id}/tokens/create`);
    return (await password.count()) > 0;
  });
  await page.getByRole("textbox", { name: "Name" }).fill("Plain");
  await password.fill("not the password");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.locator(".fault").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Name" }).inputValue(), "Plain");
  await password.fill(world.password);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const token = await page.locator(".secret code").innerText();
  assert.equal((await scim(token, "GET", "/ServiceProviderConfig")).status, 200);
  await page.goto(`/console/demo/directories/${directory.id}`);
  assert.equal(await page.getByRole("link", { name: "Revoke Plain" }).count(), 1);
}, { javaScriptEnabled: false });
