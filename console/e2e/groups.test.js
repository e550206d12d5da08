import { strict as assert } from "node:assert";
import { call, checkAccess, checkWidth, chord, first, person, scenario, signIn } from "./harness.js";

scenario("a group gets a role and a member, and the member shows the role", async (page) => {
  await signIn(page);
  await chord(page, "g", "g");
  await page.waitForURL(/\/groups$/);
  await page.keyboard.press("c");
  await page.waitForURL(/groups\/create$/);
  await page.locator("input[name=name]:focus").waitFor();
  await page.keyboard.type("Night watch");
  await page.keyboard.press("Enter");
  await page.getByText("Group created.").waitFor();
  const group = await first(page, "/groups?q=night");
  await checkAccess(page);

  await page.getByRole("link", { name: "Assign role" }).click();
  await page.getByLabel("Search by name").fill("support");
  await page.waitForURL(/q=support$/);
  await page.getByRole("link", { name: "Assign Support agent" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Assign" }).click();
  await page.getByText("Support agent was assigned to Night watch.").waitFor();

  const user = await person(page, "edsger.allen@demo.example");
  await page.goto(`/console/demo/groups/${group.id}/users/add`);
  await page.getByLabel("Search by name or email").fill("edsger allen");
  await page.waitForURL(/q=edsger/);
  await page.getByRole("link", { name: `Add ${user.name}` }).click();
  await page.getByRole("dialog").getByText("gets the roles of the group: Support agent.").waitFor();
  await checkAccess(page);
  await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
  await page.getByText("The user was added to the group.").waitFor();
  await page.getByRole("link", { name: user.name, exact: true }).click();
  await page.waitForURL(new RegExp(`/users/${user.id}$`));
  const row = page.getByRole("row").filter({ hasText: "through Night watch" });
  await row.waitFor();
  assert.equal(await row.getByRole("link", { name: /^(Change|Remove)/ }).count(), 0);
  await checkWidth(page);
  await checkAccess(page);

  await page.getByRole("link", { name: "Remove Night watch" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("The user was removed from the group.").waitFor();
  assert.ok(page.url().includes(`/users/${user.id}`));
  await row.waitFor({ state: "detached" });
});

scenario("a group with roles is deleted after its effect is confirmed", async (page) => {
  await signIn(page);
  const { body: group } = await call(page, "POST", "/groups", { name: "Short-lived" }, { "idempotency-key": "short-lived" });
  const role = await first(page, "/roles?q=support");
  await page.goto(`/console/demo/groups/${group.id}`);
  await page.getByRole("link", { name: "Delete" }).click();
  await page.getByRole("dialog").getByText("The group has no roles").waitFor();
  await call(page, "PUT", `/groups/${group.id}/roles/${role.id}`, {});
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByText("its members immediately lose its roles").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Group deleted.").waitFor();
  assert.equal((await call(page, "GET", `/groups/${group.id}`)).status, 404);
});
