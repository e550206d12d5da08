import { strict as assert } from "node:assert";
import { readFile } from "node:fs/promises";
import { first, scenario, signIn } from "./harness.js";

/** exported clicks Export. It returns the name and the lines of the downloaded file. */
async function exported(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export", exact: true }).click()]);
  const text = await readFile(await download.path(), "utf8");
  return { name: download.suggestedFilename(), lines: text.replace("\ufeff", "").trimEnd().split("\r\n") };
}

scenario("one click exports users, holders and events as a CSV file, as filtered", async (page) => {
  await signIn(page);
  const all = await exported(page);
  assert.match(all.name, /^demo-users-\d{4}-\d\d-\d\d\.csv$/);
  assert.equal(all.lines[0], "id,email,name,department,externalId,metadata,status,managedBy,createdAt,updatedAt");
  assert.ok(all.lines.length > 200, `${all.lines.length} lines`);

  await page.getByLabel("Status").selectOption("suspended");
  await page.waitForURL(/status=suspended/);
  await page.locator("a[href*='export?status=suspended']").waitFor();
  const suspended = await exported(page);
  assert.ok(suspended.lines.length > 1 && suspended.lines.slice(1).every((line) => line.includes(",suspended,")), suspended.lines.join("\n"));
  assert.match(page.url(), /users\?status=suspended$/);

  const role = await first(page, "/roles?key=owner");
  await page.goto(`/console/demo/roles/${role.id}/users`);
  assert.ok((await exported(page)).lines.length > 1);

  await page.goto("/console/demo/events?type=users.exported");
  const events = await exported(page);
  assert.match(events.name, /^demo-events-/);
  assert.equal(events.lines.length, 3);
  assert.match(events.lines[1], /users\.exported.*suspended/);
});
