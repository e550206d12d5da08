import { strict as assert } from "node:assert";
import { call, first, person, scenario, signIn } from "./harness.js";

/** covered returns the HTML of the controls that the message at the edge of the page covers. */
const covered = (page) =>
  page.evaluate(() => {
    const toast = document.querySelector(".toast").getBoundingClientRect();
    return [...document.querySelectorAll("a, button, input, select, textarea, summary")].filter((control) => {
      const box = control.getBoundingClientRect();
      return !control.closest(".toasts") && control.checkVisibility() && box.right > toast.left && box.left < toast.right && box.bottom > toast.top && box.top < toast.bottom;
    }).map((control) => control.outerHTML);
  });

/** lines returns the number of text lines of each visible element. */
const lines = (places) =>
  places.evaluateAll((list) =>
    list.filter((place) => place.checkVisibility()).map((place) => {
      const range = document.createRange();
      range.selectNodeContents(place);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
    }));

scenario("a message covers no control, on long pages and at every place of the page", async (page) => {
  await signIn(page);
  const role = await first(page, "/roles?q=support");
  const { id } = await person(page, "tony.hoare@demo.example");
  for (const width of [390, 768, 1440]) {
    await page.setViewportSize({ width, height: 700 });
    await call(page, "PUT", `/users/${id}/roles/${role.id}`, {});
    await page.goto(`/console/demo/users/${id}/roles/${role.id}/take`);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.locator(".toast").waitFor();
    await page.locator(".toast").hover();
    for (const at of [0, 0.25, 0.5, 0.75, 1]) {
      await page.evaluate(async (part) => {
        scrollTo(0, part * (document.documentElement.scrollHeight - innerHeight));
        for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
      }, at);
      assert.deepEqual(await covered(page), [], `${width} px, ${at}`);
    }
  }
});

scenario("the expiry of roles and tokens takes one line at 1024 pixels", async (page) => {
  await page.setViewportSize({ width: 1024, height: 800 });
  await signIn(page);
  const role = await first(page, "/roles?q=support");
  const { id } = await person(page, "tony.hoare@demo.example");
  await call(page, "PUT", `/users/${id}/roles/${role.id}`, { expiresAt: "2035-12-27T18:28:38Z" });
  for (const path of [`/users/${id}`, `/users/${id}/roles`]) {
    await page.goto(`/console/demo${path}`);
    const counts = await lines(page.locator("tbody time"));
    assert.ok(counts.length > 0 && counts.every((n) => n === 1), `${path}: ${counts}`);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, path);
  }
}, { timezoneId: "America/Argentina/Buenos_Aires" });

scenario("signing out removes the selection of users", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users");
  await page.locator("tbody input[name=user]").first().check();
  const kept = () => page.evaluate(() => Object.keys(sessionStorage).filter((key) => key.startsWith("selected ")).length);
  assert.equal(await kept(), 1);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/sign-in/);
  assert.equal(await kept(), 0);
  await signIn(page);
  await page.goto("/console/demo/users");
  assert.equal(await page.locator("input[name=user]:checked").count(), 0);
});

scenario("long words and right-to-left names fit every width, and are printed whole", async (page) => {
  await signIn(page);
  const long = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft";
  const create = async (path, body) => (await call(page, "POST", path, body, { "idempotency-key": JSON.stringify(body).slice(0, 30).replaceAll(/\W/g, "") })).body.id;
  const user = await create("/users", { email: `${"x".repeat(60)}@demo.example`, name: long + long, department: long });
  const arabic = await create("/users", { email: "layla@demo.example", name: "ليلى الأخيلية", department: "المبيعات والتسويق" });
  const role = await create("/roles", { name: long, description: long + long, permissions: [`shop/${"i".repeat(40)}:${"a".repeat(40)}`, "users:read"] });
  const account = await create("/service-accounts", { name: long, description: long });
  for (const id of [user, arabic]) await call(page, "PUT", `/users/${id}/roles/${role}`, { reach: { departments: [long, "المبيعات والتسويق"] } });
  const list = "/users?q=donau&columns=lastLoginAt,roles,factors";
  for (const path of [list, "/users?q=layla", `/users/${user}`, `/users/${arabic}`, `/users/${user}/roles`, `/users/${user}/roles/${role}`, `/users/${user}/edit`, "/roles", `/roles/${role}`, `/roles/${role}/edit`, "/events", "/service-accounts", `/service-accounts/${account}`, "/access?permission=users:read"]) {
    await page.goto(`/console/demo${path}`);
    for (const width of [390, 720, 1440, 2560]) { // 720 pixels are a window of 1440 pixels at a zoom of 200 %
      await page.setViewportSize({ width, height: 900 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${path}: ${wide} pixels too wide for ${width}`);
    }
  }
  await page.setViewportSize({ width: 1024, height: 900 });
  await page.goto(`/console/demo${list}`);
  await page.emulateMedia({ media: "print" });
  const cut = await page.locator("tbody .cut").evaluateAll((all) => all.filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent));
  assert.deepEqual(cut, []);
  assert.equal(await page.locator("tbody input[type=checkbox]:visible").count(), 0);
});
