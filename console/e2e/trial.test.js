import { strict as assert } from "node:assert";
import { mailLink, owner, scenario, world } from "./harness.js";

scenario("an administrator invites a user with a role in one department in at most six clicks", async (page) => {
  let clicks = 0;
  const click = async (locator) => {
    clicks++;
    await locator.click();
  };
  await page.goto("/console/demo");
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
  await click(dialog.getByLabel("Users in certain departments"));
  await click(dialog.getByLabel("Sales"));
  await click(dialog.getByRole("button", { name: "Assign" }));
  await page.locator("main").getByText("In Sales").first().waitFor();
  assert.ok(clicks <= 6, `${clicks} clicks`);

  const link = await mailLink("hedy@demo.example", "invitation");
  await page.context().clearCookies();
  await page.goto(link);
  await page.getByLabel("New password", { exact: false }).first().fill("a long enough password of hers");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/users$/);
  const rows = await page.locator("tbody tr").allInnerTexts();
  assert.ok(rows.length > 10 && rows.every((row) => /Sales/.test(row)), rows.join());
});
