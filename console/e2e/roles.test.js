import { strict as assert } from "node:assert";
import { call, checkAccess, checkWidth, chord, first, focused, person, scenario, setPassword, signIn } from "./harness.js";

scenario("a search shows matching roles while typing, and the keyboard opens them", async (page) => {
  await signIn(page);
  await chord(page, "g", "r");
  await page.waitForURL(/\/roles$/);
  await page.keyboard.press("/");
  await page.keyboard.type("support", { delay: 20 });
  await page.waitForURL(/q=support$/);
  await page.getByRole("status").filter({ hasText: "1 role" }).waitFor();
  await page.reload();
  assert.equal(await page.getByLabel("Search by name").inputValue(), "support");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Support agent" }).waitFor();
  const text = await page.locator("main").innerText();
  for (const part of ["users:suspend", "Suspend and resume users", "support-agent", "Details"]) assert.ok(text.includes(part), part);
  await page.getByRole("link", { name: /\d users/ }).click();
  await page.waitForURL(/\/users$/);
  await page.getByRole("status").filter({ hasText: /\d users/ }).waitFor();
  assert.ok((await page.locator("tbody tr").count()) > 3);
  await page.goBack();
  await page.goBack();
  await page.waitForURL(/q=support$/);
});

scenario("a role is created, edited during a conflict and deleted", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/roles");
  await page.keyboard.press("c");
  await page.waitForURL(/roles\/create$/);
  await focused(page, "name");
  await page.keyboard.type("Night watch");
  const box = page.getByRole("checkbox", { name: /Suspend and resume/ });
  await box.focus();
  await page.keyboard.press("Space");
  await page.getByLabel("Other permissions, such as").fill("nonsense:fly");
  await page.getByRole("textbox", { name: "Name" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("nonsense:fly is not one of Rolecall's own permissions").waitFor();
  assert.ok(await box.isChecked());
  await page.getByLabel("Other permissions, such as").fill("shop/tills:close");
  await page.getByRole("textbox", { name: "Name" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Role created.").waitFor();
  const role = await first(page, "/roles?q=night");
  assert.deepEqual(role.permissions, ["shop/tills:close", "users:suspend"]);

  await page.keyboard.press("e");
  await page.waitForURL(/\/edit$/);
  await call(page, "PATCH", `/roles/${role.id}`, { name: "Night guard", permissions: [...role.permissions, "users:read"] });
  await page.getByRole("textbox", { name: "Name" }).fill("Late watch");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Currently saved: Night guard").waitFor();
  await page.getByText("Added by another user: users:read").waitFor();
  await checkAccess(page);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  assert.deepEqual((await first(page, "/roles?q=late")).permissions, ["shop/tills:close", "users:read", "users:suspend"]);

  const user = await person(page, "edsger.allen@demo.example");
  await call(page, "PUT", `/users/${user.id}/roles/${role.id}`, {});
  await page.getByRole("link", { name: "Delete" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("1 user has this role.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Role deleted.").waitFor();
  assert.equal((await call(page, "GET", `/roles/${role.id}`)).status, 404);
});

scenario("a built-in role has no edit link", async (page) => {
  await signIn(page);
  const role = await first(page, "/roles?key=owner");
  await page.goto(`/console/demo/roles/${role.id}`);
  await page.getByText("This is a system role. It cannot be changed or deleted.").waitFor();
  assert.equal(await page.getByRole("link", { name: "Edit" }).count(), 0);
});

scenario("a role is assigned in departments with an expiry, changed and removed", async (page) => {
  await signIn(page);
  const user = await person(page, "radia.wirth@demo.example");
  await page.goto(`/console/demo/users/${user.id}`);
  await page.getByRole("link", { name: "Assign role" }).click();
  await page.waitForURL(/roles\/give$/);
  await page.keyboard.press("/");
  await page.keyboard.type("people", { delay: 20 });
  await page.waitForURL(/q=people$/);
  await page.getByRole("link", { name: "Assign People partner" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Users in certain departments").check();
  await form.getByRole("button", { name: "Assign" }).click();
  await form.getByText("Choose at least one department, or choose All users").waitFor();
  await form.getByRole("group", { name: "Departments" }).getByLabel("Sales").check();
  await form.getByLabel("Legal").check();
  await form.getByLabel("Expires").fill("2099-12-31T18:00");
  await checkAccess(page);
  await form.getByRole("button", { name: "Assign" }).click();
  await page.getByText("People partner was assigned to Radia Wirth.").waitFor();
  const { body } = await call(page, "GET", `/users/${user.id}/roles`);
  const held = body.items.find((a) => a.role.name === "People partner");
  assert.deepEqual([held.reach.departments, held.expiresAt], [["Legal", "Sales"], "2099-12-31T18:00:00.000000Z"]);

  await page.getByRole("link", { name: "Change People partner" }).click();
  await form.getByLabel("Expires").waitFor();
  assert.deepEqual(await form.getByRole("checkbox", { checked: true }).evaluateAll((boxes) => boxes.map((box) => box.value)), ["Legal", "Sales"]);
  await form.getByLabel("All users").check();
  assert.equal(await form.getByRole("checkbox", { checked: true }).count(), 0);
  await form.getByLabel("Expires").fill("");
  await form.getByRole("button", { name: "Save" }).click();
  await page.getByText("People partner was assigned to Radia Wirth.").waitFor();
  const source = page.locator(".table-permissions").getByText("People partner");
  await source.first().waitFor({ state: "attached" });
  await page.getByRole("link", { name: "Remove People partner" }).click();
  await form.getByRole("button", { name: "Remove role" }).click();
  await page.getByText("People partner was removed from Radia Wirth.").waitFor();
  assert.equal(await source.count(), 0);
});

scenario("an expired role stays listed in gray and can be assigned again", async (page) => {
  await signIn(page);
  const user = await person(page, "radia.wirth@demo.example");
  const partner = await first(page, "/roles?q=people");
  const assign = async (seconds) => {
    const expiresAt = new Date(Date.now() + 1000 * seconds).toISOString();
    return (await call(page, "PUT", `/users/${user.id}/roles/${partner.id}`, { reach: { departments: ["Legal"] }, expiresAt })).status;
  };
  assert.equal(await assign(3600), 201);
  const line = page.locator("tr.expired", { hasText: "People partner" });
  await page.goto(`/console/demo/users/${user.id}`);
  assert.equal(await line.count(), 0);
  await page.getByText("in Legal until").first().waitFor(); // the event shows the departments and the expiry
  for (let seconds = 1; (await assign(seconds)) !== 200; seconds *= 2); // the program refuses an expiry that has passed when it arrives
  do await page.reload();
  while ((await line.count()) === 0);
  assert.match(await line.innerText(), /Expired\s+In Legal\s+\d+ \w+ \d{4}, \d\d:\d\d UTC/);
  const quiet = await page.locator("p.quiet").first().evaluate((e) => getComputedStyle(e).color);
  assert.equal(await line.locator("a").first().evaluate((e) => getComputedStyle(e).color), quiet);
  await checkAccess(page);
  await page.goto(`/console/demo/users/${user.id}/roles`);
  await page.getByRole("link", { name: "Assign again People partner" }).click();
  await page.getByRole("dialog").getByLabel("Users in certain departments").check();
  await page.getByRole("dialog").getByLabel("Legal").check();
  await page.getByRole("dialog").getByRole("button", { name: "Assign" }).click();
  await page.getByText("People partner was assigned to Radia Wirth.").waitFor();
  assert.equal(await line.count(), 0);
  await call(page, "DELETE", `/users/${user.id}/roles/${partner.id}`);
});

scenario("roles with more permissions than the caller has can't be assigned, and the reason is shown", async (page) => {
  await signIn(page);
  const helper = await person(page, "tony.hoare@demo.example");
  const agent = await first(page, "/roles?q=support");
  const made = await call(page, "POST", "/roles", { name: "Role clerk", permissions: ["users:read", "roles:*", "roles:assign"] }, { "idempotency-key": "clerk" });
  assert.equal((await call(page, "PUT", `/users/${helper.id}/roles/${made.body.id}`, {})).status, 201);
  const password = await setPassword(helper.email);
  const user = await person(page, "radia.wirth@demo.example");
  await page.context().clearCookies();
  await signIn(page, helper.email, password);
  await page.goto(`/console/demo/users/${user.id}/roles/give`);
  const row = page.locator("tbody tr", { hasText: "Support agent" });
  await row.getByText("Can't assign").waitFor();
  assert.match(await row.locator(".held").getAttribute("title"), /how this user signs in. You need/);
  for (const path of [`/roles/${agent.id}`, "/roles/create", `/users/${user.id}/roles/give`]) {
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 844 });
      await page.goto(`/console/demo${path}`);
      await checkWidth(page);
      await checkAccess(page);
    }
  }
  assert.equal(await page.getByRole("link", { name: "Edit" }).count(), 0);
});

scenario("a selected permission shows that it can be delegated, as the page of the role does", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/roles/create");
  const permission = page.locator("input[name=permissions][value='users:suspend']");
  const delegate = page.locator("input[name=grants][value='users:suspend']");
  assert.deepEqual([await delegate.isChecked(), await delegate.isDisabled()], [false, false]);
  await permission.check();
  assert.deepEqual([await delegate.isChecked(), await delegate.isDisabled()], [true, true]);
  await permission.uncheck();
  assert.deepEqual([await delegate.isChecked(), await delegate.isDisabled()], [false, false]);
  await permission.check();
  await page.locator("input[name=grants][value='users:invite']").check();
  await page.getByLabel("Name", { exact: true }).fill("Night shift");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Role created.").waitFor();
  const { body } = await call(page, "GET", `/roles/${page.url().match(/roles\/([0-9a-f-]+)/)[1]}`);
  assert.deepEqual([body.permissions, body.grants], [["users:suspend"], ["users:invite"]]);
  const row = page.getByRole("row", { name: /Suspend and resume users/ });
  assert.equal(await row.getByText("yes", { exact: true }).count(), 2);
  await page.getByRole("link", { name: "Edit" }).click();
  await page.locator("input[name=grants][value='users:suspend']:checked:disabled").waitFor();
});
