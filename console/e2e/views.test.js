import { strict as assert } from "node:assert";
import { checkAccess, checkWidth, scenario, signIn } from "./harness.js";

const names = (page) => page.locator("tbody th .person bdi").allTextContents();

scenario("a list leads back to the previous pages", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users?sort=name");
  const pages = [await names(page)];
  for (let n = 0; n < 2; n++) {
    await page.getByRole("link", { name: "Next page" }).click();
    await page.waitForURL(/previous=/);
    await page.waitForFunction((first) => document.querySelector("tbody th .person bdi").textContent !== first, pages.at(-1)[0]);
    pages.push(await names(page));
  }
  await page.keyboard.press("p");
  await page.waitForFunction((first) => document.querySelector("tbody th .person bdi").textContent === first, pages[1][0]);
  assert.deepEqual(await names(page), pages[1]);
  assert.equal(await page.getByRole("link", { name: "First page" }).count(), 0); // the first page is the previous page, so there is no second link
  await page.getByRole("link", { name: "Previous page" }).click();
  await page.waitForURL((url) => !url.search.includes("cursor"));
  assert.deepEqual(await names(page), pages[0]);
});

scenario("the previous page works without JavaScript", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users");
  const all = await names(page);
  await page.getByRole("link", { name: "Next page" }).click();
  assert.notDeepEqual(await names(page), all);
  await page.getByRole("link", { name: "Previous page" }).click();
  assert.deepEqual(await names(page), all);
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByLabel("Name for this view").fill("Everybody");
  await page.getByRole("button", { name: "Save view" }).click();
  await page.waitForURL(/view=Everybody/);
  assert.match(await page.title(), /^Everybody · Users/);
}, { javaScriptEnabled: false });

scenario("a view keeps filters, order and columns under a name", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users");
  await page.getByLabel("Department").fill("Sal");
  await page.getByText("Showing users in the departments that begin with your input: Sales.").waitFor();
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByRole("link", { name: "Show roles" }).click();
  await page.getByRole("columnheader", { name: "Roles" }).waitFor();
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByRole("link", { name: "Show second factors" }).click();
  await page.waitForURL(/columns=roles%2Cfactors/);
  await page.locator("summary", { hasText: "Views" }).click();
  await checkAccess(page);
  await page.getByLabel("Name for this view").fill("Sales & roles");
  await page.keyboard.press("Enter");
  await page.getByText("View: Sales & roles").waitFor();
  assert.match(await page.title(), /^Sales & roles · Users/);

  await page.goto("/console/demo/users");
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByRole("link", { name: "Sales & roles" }).click();
  await page.getByText("View: Sales & roles").waitFor();
  const url = new URL(page.url());
  assert.equal(url.searchParams.get("department"), "Sales");
  assert.equal(url.searchParams.get("columns"), "roles,factors");
  await page.getByRole("searchbox").fill("a"); // with other filters the list is not this view any more, but the menu stays
  await page.getByText("View: Sales & roles").waitFor({ state: "detached" });
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByRole("button", { name: "Remove view Sales & roles" }).click();
  await page.getByRole("link", { name: "Sales & roles" }).waitFor({ state: "detached" });
  await page.goto("/console/demo/roles");
  await page.locator("summary", { hasText: "Views" }).click();
  assert.equal(await page.locator(".saved-view").count(), 0);
});

scenario("all additional columns fit every width", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users?columns=lastLoginAt,roles,factors");
  for (const width of [390, 768, 1024, 1440, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    await checkWidth(page);
    const head = await page.locator("thead").boundingBox();
    assert.ok(width < 768 || head.height < 60, `${width}: the head is ${head.height} px high`);
    await checkAccess(page);
  }
});
