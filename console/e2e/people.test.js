import { strict as assert } from "node:assert";
import { call, checkAccess, focused, mailLink, person, scenario, signIn, until } from "./harness.js";

/** newcomer creates a user and opens the user's page. It returns the user. */
async function newcomer(page, email, members = {}) {
  const { body } = await call(page, "POST", "/users", { email, name: "Radia Joy Perlman", ...members }, { "idempotency-key": email });
  await page.goto(`/console/demo/users/${body.id}`);
  return body;
}

scenario("a user is invited and gets a role using only the keyboard, then signs in", async (page) => {
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
  await page.getByText(" was created. We've emailed them an invitation.").waitFor();
  assert.match(await page.locator("main").innerText(), /Mary Keller.*No roles/s);
  await page.getByRole("link", { name: "Assign role" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/roles\/give$/);
  await page.getByRole("link", { name: "Assign Support agent" }).focus();
  await page.keyboard.press("Enter");
  await form.waitFor();
  await form.getByLabel("Users in certain departments").check();
  await form.getByRole("group", { name: "Departments" }).getByLabel("Sales").focus();
  await page.keyboard.press("Space");
  await form.getByRole("button", { name: "Assign" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText(/ was assigned to /).waitFor();
  assert.match(await page.locator("main").innerText(), /Support agent\s+In Sales/);

  await page.context().clearCookies();
  await page.goto(await mailLink(email, "invitation"));
  await page.getByLabel("New password").fill("a long enough password of hers");
  await page.getByRole("button", { name: "Accept and sign in" }).click();
  await page.waitForURL(/\/users/);
  assert.match(await page.locator("main").innerText(), /Grace Hopper/);
});

scenario("an email that another user has is refused next to the field, and the corrected form creates the user", async (page) => {
  await signIn(page);
  await page.getByRole("link", { name: "New user" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("Ada the second");
  await form.getByLabel("Email", { exact: true }).fill("Ada.Lovelace@demo.example");
  await form.getByRole("button", { name: "Create" }).click();
  await form.getByText("Another user of this tenant has this email address.").waitFor();
  await focused(page, "email");
  await form.getByText("External ID and metadata").click();
  await form.getByLabel("Key").first().fill("floor");
  await form.getByLabel("Value").first().fill("=HYPERLINK(\"http://evil\")");
  await form.getByRole("button", { name: "Add row" }).click();
  await page.keyboard.type("site");
  await form.getByLabel("Email", { exact: true }).fill("ada.two@demo.example");
  await form.getByLabel("Send an invitation by email").uncheck();
  await form.getByRole("button", { name: "Create" }).click();
  await page.getByText(/ was created\./).waitFor();
  assert.deepEqual((await person(page, "ada.two@demo.example")).metadata, { floor: "=HYPERLINK(\"http://evil\")", site: "" });
});

scenario("metadata is edited by row, and a conflict shows the value that another user saved", async (page) => {
  await signIn(page);
  const user = await newcomer(page, "radia.rows@demo.example", { metadata: { floor: "3", site: "Bonn", team: "net" } });
  await page.getByRole("link", { name: "Edit" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("floor", { exact: true }).fill("4");
  await form.getByRole("button", { name: "Remove site" }).click();
  await form.getByRole("button", { name: "Add row" }).click();
  await page.keyboard.type("desk");
  await page.keyboard.press("Tab");
  await page.keyboard.type("12");
  await call(page, "PATCH", `/users/${user.id}`, { metadata: { floor: "5", team: "web" } });
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByText("Currently saved: 5").waitFor();
  assert.equal(await form.getByLabel("team", { exact: true }).inputValue(), "web");
  await form.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const { body } = await call(page, "GET", `/users/${user.id}`);
  assert.deepEqual(body.metadata, { desk: "12", floor: "4", team: "web" });
});

scenario("the metadata form has empty rows without JavaScript", async (page) => {
  await signIn(page);
  await page.getByRole("link", { name: "New user" }).click();
  await page.waitForURL(/users\/create$/);
  await page.getByLabel("Name").fill("Plain Jane");
  await page.getByLabel("Email", { exact: true }).fill("plain.jane@demo.example");
  await page.getByText("External ID and metadata").click();
  assert.equal(await page.getByRole("button", { name: "Add row" }).count(), 0);
  await page.getByLabel("Key").nth(3).fill("floor");
  await page.getByLabel("Value").nth(3).fill("7");
  await page.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/users\/[0-9a-f-]{36}/);
  assert.match(await page.locator("main").innerText(), /floor 7/);
}, { javaScriptEnabled: false });

scenario("an email changes only after the link in the mail to the new address is opened", async (page) => {
  await signIn(page);
  const user = await newcomer(page, "radia.old@demo.example");
  await page.locator(".actions .menu summary").click();
  await page.getByRole("link", { name: "Change email" }).click();
  const form = page.getByRole("dialog");
  assert.match(await form.innerText(), /We'll email a confirmation link to the new address.*the current address works/s);
  await form.getByLabel("New email").fill("radia.new@demo.example");
  await page.keyboard.press("Enter");
  await page.getByText("We've emailed a confirmation link").waitFor();
  assert.equal((await call(page, "GET", `/users/${user.id}`)).body.email, "radia.old@demo.example");
  await page.goto(await mailLink("radia.new@demo.example", "email-change"));
  await page.getByRole("button").first().click();
  await page.getByText("Your email is confirmed.").waitFor();
  assert.equal((await call(page, "GET", `/users/${user.id}`)).body.email, "radia.new@demo.example");
});

/** statuses returns the status of each user in the list, by the user's name. */
const statuses = (page) => page.locator("tbody tr").evaluateAll((rows) => Object.fromEntries(rows.map((row) => [row.querySelector("bdi").innerText, row.querySelector(".status").innerText])));

scenario("selected users are suspended and resumed, and the list keeps its filters", async (page) => {
  await signIn(page);
  const list = "/console/demo/users?department=marketing&sort=-name&status=active";
  await page.goto(list);
  const names = Object.keys(await statuses(page));
  const bar = page.locator(".selection-bar");
  assert.equal(await bar.isVisible(), false);
  for (const key of ["j", "x", "j", "j", "x"]) await page.keyboard.press(key);
  await bar.getByText("2 selected").waitFor();
  assert.equal(await page.getByRole("status").filter({ hasText: "2 selected" }).count(), 1);
  await bar.getByRole("button", { name: "Suspend" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "Suspend 2 users?" }).waitFor();
  assert.ok([0, 2].every((i) => names[i]) && (await dialog.innerText()).includes(names[0]) && (await dialog.innerText()).includes(names[2]));
  await checkAccess(page);
  await dialog.getByRole("link", { name: "Cancel" }).and(page.locator(":focus")).waitFor();
  await dialog.getByLabel("Reason").focus();
  await page.keyboard.type("the campaign is over");
  await page.keyboard.press("Enter"); // moves the focus to the button
  await dialog.getByRole("button", { name: "Suspend" }).and(page.locator(":focus")).waitFor();
  await page.keyboard.press("Enter");
  await dialog.getByRole("heading", { name: "2 users suspended" }).waitFor();
  await dialog.getByRole("link", { name: "Back to the list" }).and(page.locator(":focus")).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: names[0] }).waitFor({ state: "detached" }); // the list shows active users only
  assert.ok(page.url().endsWith(list));
  assert.deepEqual(Object.keys(await statuses(page)), names.filter((name, i) => i !== 0 && i !== 2));

  await page.goto(list.replace("active", "suspended"));
  await page.getByLabel("Select all on this page").check();
  await bar.getByRole("button", { name: "Resume" }).click();
  await dialog.getByRole("button", { name: "Resume" }).click();
  await dialog.getByText("resumed").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("No users match").waitFor(); // the list is loaded again
  await page.goto(list);
  const { [names[0]]: first, [names[2]]: third } = await statuses(page);
  assert.deepEqual([first, third], ["Active", "Active"]);
});

scenario("the result of a bulk suspension names each unchanged user with the reason", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users?sort=name");
  await page.getByLabel("Select Ada Lovelace").check();
  await page.getByLabel("Select Alan Allen").check();
  await page.locator(".selection-bar").getByRole("button", { name: "Suspend" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Suspend" }).click();
  await dialog.getByText("1 user wasn't changed").waitFor();
  assert.match(await dialog.innerText(), /1 user suspended.*Ada Lovelace.*You.*needs at least one active user whose owner role/s);
  await checkAccess(page);
  await dialog.getByRole("link", { name: "Try again" }).click();
  await dialog.getByRole("heading", { name: "Suspend 1 user?" }).waitFor();
});

scenario("a role is assigned to many users at once in departments, after an invalid form was corrected", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users?department=legal&sort=name");
  await page.getByLabel("Select all on this page").check();
  const count = await page.locator("tbody input:checked").count();
  assert.ok(count > 5);
  await page.locator(".selection-bar").getByRole("button", { name: "Assign role" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Role").selectOption({ label: "Auditor" });
  await dialog.getByLabel("Users in certain departments").check();
  await dialog.getByRole("button", { name: "Assign role" }).click();
  await dialog.getByText("Choose at least one department, or choose All users").waitFor();
  await dialog.getByRole("group", { name: "Departments" }).getByLabel("Legal").check();
  await dialog.getByLabel("Expires").fill("2099-12-31T18:00");
  await dialog.getByRole("button", { name: "Assign role" }).click();
  await dialog.getByText(/Role assigned to/).waitFor();
  const given = Number((await dialog.getByRole("heading").innerText()).match(/\d+/)[0]);
  const refused = await dialog.locator(".outcome li").count();
  assert.equal(given + refused, count);
  const shownAnew = page.waitForEvent("load");
  await dialog.getByRole("link", { name: "Back to the list" }).click();
  await shownAnew;
  assert.match(page.url(), /department=legal&sort=name$/);
  const { body } = await call(page, "GET", "/roles?q=auditor");
  await page.goto(`/console/demo/users?department=legal&role=${body.items[0].id}`);
  assert.equal(await page.locator("tbody tr").count(), given);
});

for (const javaScriptEnabled of [true, false]) {
  scenario(`a job suspends all users that match, and resumes them, ${javaScriptEnabled ? "with" : "without"} JavaScript`, async (page) => {
    await signIn(page);
    const matching = (await call(page, "GET", "/users?department=Marketing&limit=200")).body.items.filter((user) => user.status === "active");
    const bystanders = (await call(page, "GET", "/users?status=suspended&count=true")).body.total;
    for (const [action, from, to] of [["Suspend", "active", "suspended"], ["Resume", "suspended", "active"]]) {
      await page.goto(`/console/demo/users?department=marketing&status=${from}&sort=name&limit=5`);
      if (javaScriptEnabled) await page.getByLabel("Select all on this page").check();
      await page.getByLabel("Select all that match").check();
      await page.getByRole("button", { name: action }).click();
      const heading = page.getByRole("heading", { name: /\d+ users\?/ });
      await heading.waitFor();
      if (action === "Suspend") assert.equal(await heading.innerText(), `Suspend ${matching.length} users?`);
      if (javaScriptEnabled) await checkAccess(page);
      await page.locator("form[action*='/users/all/']").getByRole("button", { name: action }).click();
      await page.waitForURL(/jobs\/[0-9a-f-]{36}/);
      await until(async () => {
        if (!javaScriptEnabled) await page.reload();
        return page.getByText("Completed").isVisible();
      });
      if (javaScriptEnabled) await checkAccess(page);
      for (const { id } of matching) assert.equal((await call(page, "GET", `/users/${id}`)).body.status, to);
    }
    const still = (await call(page, "GET", "/users?status=suspended&count=true")).body.total;
    assert.ok(still <= bystanders, `${still} users are suspended, and ${bystanders} were before`);
    await page.goto("/console/demo/jobs");
    assert.ok((await page.getByRole("link", { name: /users$/ }).count()) >= 2);
  }, { javaScriptEnabled });
}

scenario("selected users are suspended without JavaScript", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users?q=turing&department=support");
  const boxes = page.getByRole("checkbox");
  const count = await boxes.count();
  for (let i = 0; i < count; i++) await boxes.nth(i).check();
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.waitForURL(/users\/selected\/suspend/);
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByRole("heading", { name: count === 1 ? "1 user suspended" : `${count} users suspended` }).waitFor();
  await page.getByRole("link", { name: "Back to the list" }).click();
  await page.waitForURL(/users\?department=support&q=turing$/);
  assert.ok(Object.values(await statuses(page)).every((status) => status === "Suspended"));
}, { javaScriptEnabled: false });
