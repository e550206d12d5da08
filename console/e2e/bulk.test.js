import { strict as assert } from "node:assert";
import { call, checkAccess, first, person, scenario, signIn, until } from "./harness.js";

const statusOf = async (page, id) => (await call(page, "GET", `/users/${id}`)).body.status;
const focused = (locator, page) => locator.and(page.locator(":focus")).waitFor();

/** hire creates users of the department and returns their ids. */
async function hire(page, department, count) {
  const ids = [];
  for (let i = 0; i < count; i++) {
    const { status, body } = await call(page, "POST", "/users", { email: `${department}${i}@demo.example`.toLowerCase(), name: `${department} person ${i}`, department }, { "idempotency-key": `${department}${i}` });
    assert.equal(status, 201, JSON.stringify(body));
    ids.push(body.id);
  }
  return ids;
}

/** openAll opens the confirmation of the action for all users that match. */
async function openAll(page, list, action) {
  await page.goto(`/console/demo/users${list}`);
  await page.getByLabel("Select all on this page").check();
  await page.getByLabel("Select all that match").check();
  await page.locator(".selection-bar").getByRole("button", { name: action }).click();
}

scenario("Enter never confirms a destructive action by accident, although the form has a field", async (page) => {
  await signIn(page);
  const ids = await hire(page, "Aviation", 3);
  const dialog = page.getByRole("dialog");
  const cancel = dialog.getByRole("link", { name: "Cancel" });
  const user = `/console/demo/users/${ids[0]}`;
  const open = [
    () => openAll(page, "?department=Aviation&limit=2", "Suspend"),
    async () => {
      await page.goto("/console/demo/users?department=Aviation");
      await page.getByLabel("Select all on this page").check();
      await page.locator(".selection-bar").getByRole("button", { name: "Suspend" }).click();
    },
    async () => {
      await page.goto(user);
      await page.getByText("More", { exact: true }).click();
      await page.getByRole("link", { name: "Suspend" }).click();
    },
    async () => {
      await page.goto(user);
      await page.getByText("More", { exact: true }).click();
      await page.getByRole("link", { name: "Erase" }).click();
    },
  ];
  for (const [i, ask] of open.entries()) {
    await ask();
    await focused(cancel, page);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await ask();
    const field = dialog.getByRole("textbox");
    await field.fill("Aviation");
    await field.press("Enter");
    await focused(dialog.locator("button.danger"), page);
    for (const id of ids) assert.equal(await statusOf(page, id), "pending", `way ${i}`);
  }
});

scenario("the result of a bulk action offers to reverse it for the users that it has changed", async (page) => {
  await signIn(page);
  const ids = await hire(page, "Botany", 3);
  await call(page, "POST", `/users/${ids[2]}/suspend`, {});
  await page.goto("/console/demo/users?department=Botany");
  await page.getByLabel("Select all on this page").check();
  await page.locator(".selection-bar").getByRole("button", { name: "Suspend" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Suspend" }).click();
  await dialog.getByRole("heading", { name: "3 users suspended" }).waitFor();
  await dialog.getByRole("link", { name: "Resume these 2 users" }).click(); // the third one was suspended before
  await dialog.getByRole("heading", { name: "Resume 2 users?" }).waitFor();
  await checkAccess(page);
  await dialog.getByRole("button", { name: "Resume" }).click();
  await dialog.getByRole("heading", { name: "2 users resumed" }).waitFor();
  assert.deepEqual([await statusOf(page, ids[0]), await statusOf(page, ids[1]), await statusOf(page, ids[2])], ["pending", "pending", "suspended"]);
});

scenario("a started job ends the selection, and its page leads to the users that it has changed, to change them back", async (page) => {
  await signIn(page);
  const ids = await hire(page, "Cartography", 4);
  await call(page, "POST", `/users/${ids[3]}/suspend`, {});
  await openAll(page, "?department=Cartography&limit=2", "Suspend");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("You can't undo the job as a whole").waitFor();
  await dialog.getByRole("button", { name: "Suspend" }).click();
  await page.getByText("The job started.").waitFor();
  await page.getByText("Completed").waitFor();
  const job = page.url();
  await page.goto("/console/demo/users?department=Cartography&limit=2");
  assert.equal(await page.locator("input[name=user]:checked").count(), 0);
  await page.goto(job);
  await page.getByRole("link", { name: "Resume the changed users" }).click();
  await page.getByText("Cartography person 0").waitFor();
  assert.equal(await page.getByText("Cartography person 3").count(), 0);
  await page.getByRole("link", { name: "Resume these 3 users" }).click();
  await dialog.getByRole("button", { name: "Resume" }).click();
  await dialog.getByRole("heading", { name: "3 users resumed" }).waitFor();
  const statuses = [];
  for (const id of ids) statuses.push(await statusOf(page, id)); // before the navigation: Chromium can stop answering for cookies during it
  assert.deepEqual(statuses, ["pending", "pending", "pending", "suspended"]);
  await dialog.getByRole("link", { name: "Back to the list" }).click();
  await page.waitForURL(/jobs\/[0-9a-f-]{36}\/users$/);
});

scenario("the confirmation to stop a job has clear buttons", async (page) => {
  await signIn(page);
  const role = await first(page, "/roles?q=support");
  const { status, body } = await call(page, "POST", "/jobs/assign-role", { users: { department: "Nowhere" }, roleId: role.id }, { "idempotency-key": "nowhere" });
  assert.equal(status, 201, JSON.stringify(body));
  await page.goto(`/console/demo/jobs/${body.id}/cancel`);
  await page.getByRole("heading", { name: "Stop this job?" }).waitFor();
  assert.deepEqual(await page.locator("#confirm .buttons > *").allInnerTexts(), ["Stop job", "Keep it running"]);
});

scenario("no word in the roles of a user is broken, at any width", async (page) => {
  await signIn(page);
  const { id } = await person(page, "tony.hoare@demo.example");
  const roles = (await call(page, "GET", "/roles?limit=2")).body.items;
  await call(page, "PUT", `/users/${id}/roles/${roles[0].id}`, {});
  await call(page, "PUT", `/users/${id}/roles/${roles[1].id}`, { reach: { departments: ["Customer success", "Engineering", "Sales"] }, expiresAt: "2099-12-31T18:00:00Z" });
  await page.goto(`/console/demo/users/${id}`);
  for (const width of [390, 800, 1024, 1216, 1280, 1366, 1440, 1680]) {
    await page.setViewportSize({ width, height: 900 });
    const heights = await page.locator(".table-held tbody td:not(.col-actions)").evaluateAll((cells) => cells.map((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return Math.round(range.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight));
    }));
    assert.ok(heights.every((lines) => lines <= 3), `${width}: ${heights}`);
    assert.ok(await page.getByText("Everywhere", { exact: true }).first().evaluate((e) => e.getClientRects().length === 1), `${width}`);
    await until(() => page.locator(".table-held").evaluate((table) => table.scrollWidth <= table.clientWidth));
  }
});
