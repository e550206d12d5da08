import { strict as assert } from "node:assert";
import { call, command, first, mailLink, owner, person, scenario, signIn, world } from "./harness.js";

scenario("an administrator invites a user with a role in one department in five clicks", async (page) => {
  let clicks = 0;
  const click = async (locator) => {
    clicks++;
    await locator.click();
  };
  await page.goto("/console/demo");
  await page.getByLabel("Email").and(page.locator(":focus")).waitFor(); // the browser sets the focus after the page has loaded
  await page.keyboard.type(owner);
  await page.keyboard.press("Tab");
  await page.keyboard.type(world.password);
  await page.keyboard.press("Enter");

  await click(page.getByRole("link", { name: "New user" }));
  await page.getByLabel("Name", { exact: true }).and(page.locator(":focus")).waitFor();
  for (const text of ["Hedy Lamarr", "hedy@demo.example", "Sales"]) {
    await page.keyboard.type(text);
    await page.keyboard.press(text === "Sales" ? "Enter" : "Tab");
  }
  await page.getByText("We've emailed them an invitation").waitFor();

  await click(page.getByRole("link", { name: "Assign role" }));
  await click(page.getByRole("row", { name: /Support agent/ }).getByRole("link", { name: "Assign" }));
  const dialog = page.getByRole("dialog");
  await click(dialog.getByLabel("Sales"));
  await click(dialog.getByRole("button", { name: "Assign" }));
  await page.locator("main").getByText("In Sales").first().waitFor();
  assert.equal(clicks, 5);

  const link = await mailLink("hedy@demo.example", "invitation");
  await page.context().clearCookies();
  await page.goto(link);
  await page.getByLabel("New password", { exact: false }).first().fill("a long enough password of hers");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/users$/);
  const rows = await page.locator("tbody tr").allInnerTexts();
  assert.ok(rows.length > 10 && rows.every((row) => /Sales/.test(row)), rows.join());
});

/**
 * task is a scenario that checks that a user needs exactly cost actions. An action is a click, the key
 * that submits a form, or a text that is typed into one field. prepare returns the address of the page
 * on which the task starts, and the values that play needs.
 */
function task(name, cost, prepare, play) {
  scenario(`${name} takes ${cost} ${cost === 1 ? "action" : "actions"}`, async (page) => {
    await signIn(page);
    const { address, ...needed } = await prepare(page);
    await page.goto(`/console/demo${address}`);
    let count = 0;
    await play(page, {
      click: async (locator) => { count++; await locator.click(); },
      type: async (locator, text) => { count++; await locator.fill(text); },
    }, needed);
    assert.equal(count, cost);
  });
}

const radia = (page) => person(page, "radia.wirth@demo.example");

task("the assignment of a role in two departments until a date", 6, async (page) => {
  const { id } = await radia(page);
  return { address: `/users/${id}`, id };
}, async (page, does, { id }) => {
  const dialog = page.getByRole("dialog");
  await does.click(page.getByRole("link", { name: "Assign role" }));
  await does.click(page.getByRole("link", { name: "Assign People partner" }));
  await does.click(dialog.getByLabel("Sales"));
  await does.click(dialog.getByLabel("Legal"));
  await does.type(dialog.getByLabel("Expires"), "2099-12-31T18:00");
  await does.click(dialog.getByRole("button", { name: "Assign" }));
  await page.getByText("People partner was assigned to Radia Wirth.").waitFor();
  const { body } = await call(page, "GET", `/users/${id}/roles`);
  const held = body.items.find((a) => a.role.name === "People partner");
  assert.deepEqual([held.reach.departments, held.expiresAt], [["Legal", "Sales"], "2099-12-31T18:00:00.000000Z"]);
});

task("the undo of a removed role", 1, async (page) => {
  const { id } = await radia(page);
  const role = await first(page, "/roles?q=people");
  await call(page, "PUT", `/users/${id}/roles/${role.id}`, {});
  return { address: `/users/${id}/roles/${role.id}/take` };
}, async (page, does) => {
  await page.locator("main").getByRole("button", { name: "Remove role" }).click();
  await does.click(page.getByRole("button", { name: "Undo" }));
  await page.getByText("was assigned to").waitFor();
});

task("the clone of a role", 2, async (page) => {
  const { id } = await first(page, "/roles?q=support");
  return { address: `/roles/${id}` };
}, async (page, does) => {
  await does.click(page.getByRole("link", { name: "Clone" }));
  await does.click(page.getByRole("button", { name: "Create" }));
  await page.getByText("Role created.").waitFor();
});

const users = async () => ({ address: "/users" });

task("the question who has users:erase", 2, users, async (page, does) => {
  await does.click(page.getByRole("link", { name: "Access", exact: true }));
  await does.type(page.getByLabel("Permission", { exact: true }), "users:erase");
  await page.getByRole("row", { name: /Ada Lovelace/ }).waitFor();
  await page.waitForURL(/permission=users%3Aerase$/);
});

task("the export of the users as CSV", 1, users, async (page, does) => {
  const [download] = await Promise.all([page.waitForEvent("download"), does.click(page.getByRole("link", { name: "Export", exact: true }))]);
  assert.match(download.suggestedFilename(), /^demo-users-.*\.csv$/);
});

task("the switch to another tenant", 2, async (page) => {
  const password = "another long enough password";
  await command(password, "tenant", "create", "globex", "--display-name", "Globex Corporation", "--owner-email", owner, "--owner-name", "Ada Lovelace", "--password-stdin");
  await page.goto("/console/globex/sign-in");
  await page.getByLabel("Email").fill(owner);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.waitForURL("/console/globex/home");
  return users();
}, async (page, does) => {
  await does.click(page.getByText("Demo Incorporated"));
  await does.click(page.getByRole("link", { name: "Globex Corporation" }));
  await page.waitForURL("/console/globex/home");
});
