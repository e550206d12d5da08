import { strict as assert } from "node:assert";
import { checkAccess, checkWidth, person, scenario, signIn } from "./harness.js";

scenario("a list, a dialog and a page show their API requests", async (page) => {
  await signIn(page);
  const user = await person(page, "edsger.wirth@demo.example");
  await page.goto("/console/demo/users");
  await page.getByText("API request", { exact: true }).click();
  const command = page.locator("#api-command");
  assert.match(await command.innerText(), /^curl 'http.*\/users' \\/);
  await page.getByLabel("Search").first().fill("ada");
  await page.waitForURL(/q=ada/);
  await page.waitForFunction(() => document.getElementById("api-command").innerText.includes("/users?q=ada'"));
  await checkAccess(page);

  await page.goto(`/console/demo/users/${user.id}/suspend`);
  const summary = page.getByText("API request", { exact: true });
  await summary.focus();
  await page.keyboard.press("Enter");
  assert.match(await command.innerText(), new RegExp(`/users/${user.id}/suspend'`));
  await checkAccess(page);
  await checkWidth(page);
  await page.getByRole("button", { name: "Copy as curl" }).click();
  await page.locator(".toast").waitFor();
});
