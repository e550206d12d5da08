import { strict as assert } from "node:assert";
import { call, checkAccess, checkWidth, chord, mailLink, person, scenario, setPassword, signIn } from "./harness.js";

/** shown returns the texts of the events in the list. */
const shown = (page) => page.locator(".event-days .event").allInnerTexts();

scenario("events are filtered by type and user, and the filters survive reload and back", async (page) => {
  await signIn(page);
  const user = await person(page, "edsger.wirth@demo.example");
  await call(page, "POST", `/users/${user.id}/suspend`, { reason: "long leave" });
  await chord(page, "g", "e");
  await page.waitForURL(/\/events$/);
  await page.getByLabel("Event").selectOption("user.suspended");
  await page.waitForURL(/type=user.suspended/);
  await page.getByRole("listitem").filter({ hasText: "long leave" }).waitFor();
  assert.ok((await shown(page)).every((line) => / suspended /.test(line)));

  await page.getByLabel("Find a user").fill("edsger wir");
  await page.getByRole("link", { name: `All changes ${user.name}` }).click();
  await page.waitForURL(new RegExp(`subject=${user.id}&type=user.suspended`));
  assert.equal((await shown(page)).length, 1);
  const line = page.locator(".event-days .event");
  await line.locator("summary").click();
  assert.match(await line.innerText(), /You suspended Edsger Wirth.*long leave.*Status.*→.*suspended.*IP address.*127\.0\.0\.1.*Request/s);
  await page.reload();
  assert.equal((await shown(page)).length, 1);
  await line.getByRole("link", { name: user.name, exact: true }).click();
  await page.getByRole("heading", { name: user.name }).waitFor();
  await page.goBack();
  await page.waitForURL(/type=user.suspended/);
  assert.equal((await shown(page)).length, 1);
  await page.getByRole("link", { name: `About ${user.name}` }).click();
  await page.waitForURL(/events\?type=user.suspended$/);
  await page.getByLabel("Before").fill("2000-01-01");
  await page.waitForURL(/to=2000-01-01/);
  await page.getByText("No events match").waitFor();
  await page.getByLabel("From").fill("2000-01-02");
  await page.getByText("Before must be a later day than From.").waitFor();
});

scenario("the page of a user links to all their changes, with pages of 50 events", async (page) => {
  await signIn(page);
  const user = await person(page, "ada.lovelace@demo.example");
  for (let i = 0; i < 60; i++) await call(page, "PATCH", `/users/${user.id}`, { externalId: `A-${i}` });
  await page.goto(`/console/demo/users/${user.id}`);
  await page.getByRole("link", { name: "All changes" }).click();
  await page.getByRole("heading", { name: "Changes to Ada Lovelace" }).waitFor();
  const first = await shown(page);
  assert.equal(first.length, 50);
  assert.match(first[0], /You changed these fields: External ID/);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByText("A-59").first().waitFor();
  await page.keyboard.press("n");
  await page.waitForURL(/cursor=/);
  assert.ok((await shown(page)).length > 10);
  await page.goBack();
  await page.waitForURL(/events$/);
  assert.equal((await shown(page)).length, 50);
});

scenario("a user with only events:read sees the events without the names of users", async (page) => {
  await signIn(page);
  const user = await person(page, "barbara.liskov@demo.example");
  const { body: role } = await call(page, "POST", "/roles", { name: "Events only", permissions: ["events:read"] }, { "idempotency-key": "events-only" });
  await call(page, "PUT", `/users/${user.id}/roles/${role.id}`, {});
  for (const held of (await call(page, "GET", `/users/${user.id}/roles`)).body.items) {
    if (held.role.id !== role.id) await call(page, "DELETE", `/users/${user.id}/roles/${held.role.id}`);
  }
  const password = await setPassword(user.email);
  await page.context().clearCookies();
  await page.goto("/console/demo/sign-in");
  await page.getByLabel("Email").fill(user.email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL(/\/home$/);
  await page.goto(`/console/demo/events?type=user.created`);
  assert.ok((await shown(page)).every((line) => /a user you can't view/.test(line)));
  await page.locator("summary[data-row]").first().click();
  assert.equal(await page.locator("details[open] .held").first().getAttribute("title"), "Hidden. You need users.createdAt:read to see this.");
  assert.ok(!(await page.content()).includes("Lovelace"));
  await checkAccess(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await checkWidth(page);
});

scenario("a user is deleted, listed under the deleted users, restored and invited using only the keyboard", async (page) => {
  await signIn(page);
  const user = await person(page, "margaret.hamilton@demo.example");
  await page.goto(`/console/demo/users/${user.id}/delete`);
  await page.getByRole("button", { name: "Delete" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("They can be restored").waitFor();
  await page.getByLabel("Status").selectOption("deleted");
  await page.waitForURL(/users\/deleted$/);
  assert.equal(await page.locator("tbody tr").first().locator("bdi").first().innerText(), user.name);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: user.name }).waitFor();
  assert.equal((await call(page, "GET", `/users/${user.id}`)).status, 404);
  await page.getByRole("link", { name: "Restore" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("need a new invitation").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Restore" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("was restored but can't sign in yet").waitFor();
  await page.locator(".verdict").getByRole("link", { name: "Invite" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Invite" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText(`We've emailed ${user.name} an invitation.`).waitFor();
  await mailLink(user.email, "invitation");
});

scenario("a restore lists the roles that were not restored because the caller can't assign them", async (page) => {
  await signIn(page);
  const helper = await person(page, "tony.knuth@demo.example");
  const user = (await call(page, "GET", "/users?limit=40")).body.items[33];
  const made = await Promise.all([
    call(page, "POST", "/roles", { name: "Restorers", permissions: ["users:restore", "users:read", "roles:read"] }, { "idempotency-key": "restorers" }),
    call(page, "POST", "/roles", { name: "Lost in the restore", permissions: ["shop/orders:approve"] }, { "idempotency-key": "lost" }),
  ]);
  await call(page, "PUT", `/users/${helper.id}/roles/${made[0].body.id}`, {});
  await call(page, "PUT", `/users/${user.id}/roles/${made[1].body.id}`, {});
  assert.equal((await call(page, "DELETE", `/users/${user.id}`)).status, 204);
  const password = await setPassword(helper.email);
  await page.context().clearCookies();
  await signIn(page, helper.email, password);
  await page.getByRole("link", { name: "Deleted" }).click();
  await page.locator("tbody tr", { hasText: user.name }).first().getByRole("link", { name: "Restore" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
  await page.getByRole("heading", { name: `${user.name} was restored` }).waitFor();
  assert.match(await page.getByRole("dialog").innerText(), /weren't restored.*Lost in the restore/s);
  await checkAccess(page);
  await page.getByRole("link", { name: "Go to the user" }).click();
  await page.waitForURL(new RegExp(`users/${user.id}$`));
});

scenario("an erasure asks for the email and removes the name from lists and events", async (page) => {
  await signIn(page);
  const user = (await call(page, "GET", "/users?limit=60")).body.items[50];
  await page.goto(`/console/demo/users/${user.id}`);
  await page.locator(".actions .menu summary").click();
  await page.getByRole("link", { name: "Erase" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("User to erase").fill("somebody else");
  await dialog.getByRole("button", { name: "Erase" }).click();
  await dialog.getByText("Must match the text above.").waitFor();
  await dialog.getByLabel("User to erase").fill(user.email);
  await dialog.getByRole("button", { name: "Erase" }).click();
  await page.getByText("User erased permanently.").waitFor();
  await page.goto(`/console/demo/events?subject=${user.id}`);
  assert.match((await shown(page))[0], /You erased a deleted user/);
  assert.ok(!(await page.content()).includes(user.name));
  await page.goto("/console/demo/users/deleted");
  assert.ok(!(await page.content()).includes(user.name));
});

scenario("an open invitation is listed, resent and withdrawn", async (page) => {
  await signIn(page);
  const made = await call(page, "POST", "/users", { email: "new.hire@demo.example", name: "New Hire", invite: true }, { "idempotency-key": "new-hire" });
  assert.equal(made.status, 201);
  await page.getByRole("navigation", { name: "Lists of users" }).getByRole("link", { name: "Invitations" }).click();
  await page.waitForURL(/\/invitations$/);
  await page.getByRole("link", { name: "Withdraw New Hire" }).waitFor();
  await page.getByRole("link", { name: "Resend invitation New Hire" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Invite" }).click();
  await page.getByText("We've emailed New Hire an invitation.").waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Withdraw New Hire" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Withdraw invitation" }).click();
  await page.getByText("The invitation of New Hire was withdrawn.").waitFor();
  await page.goto("/console/demo/invitations");
  assert.equal(await page.getByRole("link", { name: "Withdraw New Hire" }).count(), 0);
});
