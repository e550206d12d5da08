import { strict as assert } from "node:assert";
import { checkAccess, checkWidth, scenario } from "./harness.js";

const pages = ["/docs", "/docs?q=invite", "/docs/operations/UsersController_createUser", "/docs/operations/TenantController_updateTenant", "/docs/permissions", "/docs/events", "/problems", "/problems/validation"];

scenario("the API reference is accessible in both themes and at two widths", async (page) => {
  for (const path of pages) {
    await page.goto(path);
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 844 });
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        await checkWidth(page);
        await checkAccess(page);
      }
    }
  }
});

scenario("a search of the API reference shows matching operations while typing", async (page) => {
  await page.goto("/docs");
  const shown = page.locator(".operations li:visible");
  const all = await shown.count();
  await page.keyboard.press("/");
  await page.keyboard.type("delete role");
  await page.getByText("Delete a role", { exact: true }).waitFor();
  assert.ok((await shown.count()) < all);
  await page.getByRole("status").getByText("operations").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/docs\?q=delete\+role$/);
  await page.getByRole("link", { name: "Delete a role", exact: true }).click();
  await page.getByRole("heading", { name: "Delete a role" }).waitFor();
  await page.getByLabel("Example request").getByText("curl -X DELETE").waitFor();
});
