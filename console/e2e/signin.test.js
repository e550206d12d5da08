import { strict as assert } from "node:assert";
import { authenticator, call, checkAccess, command, endSession, first, mailLink, owner, person, scenario, setPassword, signIn, totp, world } from "./harness.js";

scenario("the form refuses a wrong password and accepts the right one, and no page is visible after the sign-out", async (page) => {
  await page.goto("/console/");
  await page.getByLabel("Tenant").fill("demo");
  await page.getByLabel("Email").fill(owner);
  await page.getByLabel("Password").fill("not the password");
  await page.keyboard.press("Enter");
  const problem = page.getByRole("alert");
  assert.match(await problem.innerText(), /password is wrong for this tenant.*\nRequest\s+[0-9a-f-]{36}/s);
  assert.equal(await page.getByLabel("Tenant").inputValue(), "demo");
  assert.equal(await page.getByLabel("Email").inputValue(), owner);

  await page.getByLabel("Password").fill(world.password);
  await page.keyboard.press("Enter");
  await page.waitForURL("/console/demo/home");
  const [cookie] = (await page.context().cookies()).filter((c) => c.name === "console-demo");
  assert.deepEqual([cookie.path, cookie.httpOnly, cookie.sameSite], ["/", true, "Lax"]);

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/sign-in/);
  assert.match(await page.getByRole("status").innerText(), /signed out/);
  await page.goBack();
  await page.waitForURL(/sign-in/);
  assert.ok(!(await page.content()).includes("grace.hopper"));
});

scenario("the sign-in leads back to the requested page of the console, and never to another site", async (page) => {
  await page.goto("/console/demo/users?q=hop&status=active");
  await page.waitForURL(/sign-in/);
  await page.getByLabel("Email").fill(owner);
  await page.getByLabel("Password").fill(world.password);
  await page.keyboard.press("Enter");
  await page.waitForURL("/console/demo/users?q=hop&status=active");
  for (const evil of ["//evil.example", "https://evil.example/", "/\\evil.example", "/../../docs", "javascript:alert(1)", "/%2e%2e/%2e%2e/docs"]) {
    await page.goto(`/console/demo/sign-in?return=${encodeURIComponent(evil)}`);
    await page.getByLabel("Email").fill(owner);
    await page.getByLabel("Password").fill(world.password);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/console\/demo\/home$/);
  }
});

scenario("the sign-in asks for a second factor after the password and accepts a recovery code", async (page) => {
  const email = "alan.turing@demo.example";
  const password = await setPassword(email);
  await signIn(page, email, password);
  const { body: begun } = await call(page, "POST", "/auths/totp");
  const { body: codes } = await call(page, "POST", "/auths/totp/confirm", { code: totp(begun.secret) });
  await endSession(page);

  await page.goto("/console/demo/sign-in?return=/users/none");
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.getByLabel("Code from your authenticator app").fill("000000");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.getByText("Use a recovery code").click();
  await page.getByLabel("Recovery code").fill(codes.recoveryCodes[0]);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/users\/none/); // the sign-in still leads back to the requested page
  const { body: session } = await call(page, "GET", "/auths/session");
  assert.equal(session.session.secondFactor, true);
});

scenario("a passkey signs in without a password", async (page) => {
  const email = "radia.perlman@demo.example";
  const password = await setPassword(email);
  await authenticator(page);
  await signIn(page, email, password);
  const { body: options } = await call(page, "POST", "/auths/passkeys/options");
  const passkey = await page.evaluate(async (json) => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(json);
    return (await navigator.credentials.create({ publicKey })).toJSON();
  }, options.publicKey);
  const made = await call(page, "POST", "/auths/passkeys", { name: "Key", passkey }, { "idempotency-key": "passkey" });
  assert.equal(made.status, 201);
  await endSession(page);
  await page.goto("/console/demo/sign-in");
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.waitForURL((url) => !url.pathname.includes("sign-in"));
  const { body: session } = await call(page, "GET", "/auths/session");
  assert.equal(session.user.email, email);
});

scenario("an invitation link works once, and its token disappears from the address bar", async (page) => {
  const email = "grace.dijkstra@demo.example";
  await signIn(page);
  const { body: users } = await call(page, "GET", "/users?status=pending&limit=1");
  const [invited] = users.items;
  await page.goto(`/console/demo/users/${invited.id}`);
  await page.getByRole("link", { name: /^Invite/ }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Invite" }).click();
  await page.getByText(/We've emailed .+ an invitation/).waitFor();
  const link = await mailLink(invited.email, "invitation");

  await page.context().clearCookies();
  await page.goto(link);
  await page.getByLabel("New password").fill("short");
  assert.ok(!page.url().includes("#"), page.url());
  await page.getByRole("button", { name: "Accept and sign in" }).click();
  assert.match(await page.locator(".fault").innerText(), /15/);
  await page.getByLabel("New password").fill("a sentence of a few words");
  await page.getByRole("button", { name: "Accept and sign in" }).click();
  await page.waitForURL((url) => !url.pathname.includes("invitation"));
  const { body: session } = await call(page, "GET", "/auths/session");
  assert.equal(session.user.email, invited.email);

  await page.context().clearCookies();
  await page.goto("about:blank");
  await page.goto(link); // this link was already used
  await page.getByLabel("New password").fill("a sentence of a few words");
  await page.getByRole("button", { name: "Accept and sign in" }).click();
  await page.getByRole("alert").waitFor();
});

scenario("a forgotten password is reset by the link in the mail", async (page) => {
  const email = "katherine.johnson@demo.example";
  await page.goto("/console/demo/sign-in");
  await page.getByRole("link", { name: "Forgot your password?" }).click();
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Email me a link" }).click();
  assert.match(await page.getByRole("status").innerText(), /emailed them a link/);
  await page.goto(await mailLink(email, "password-reset"));
  await page.getByLabel("New password").fill("another sentence of words");
  await page.getByRole("button", { name: "Set password" }).click();
  assert.match(await page.getByRole("status").innerText(), /password was changed/);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill("another sentence of words");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => !url.pathname.includes("sign-in"));
});

// These tests are the last ones, because they make a second factor mandatory for some users.
scenario("a user who must have a second factor adds an authenticator app while signing in", async (page) => {
  const email = "barbara.liskov@demo.example";
  const password = await setPassword(email);
  await signIn(page);
  const role = await first(page, "/roles?q=directory");
  const user = await person(page, email);
  await call(page, "PUT", `/users/${user.id}/roles/${role.id}`, {});
  const { status } = await call(page, "PATCH", "/tenant", { settings: { secondFactor: { required: "roles", roles: [role.id] } } });
  assert.equal(status, 200);
  await page.context().clearCookies();

  await page.goto("/console/demo/sign-in");
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  const key = (await page.locator(".secret code").textContent()).replaceAll(/\s/g, "");
  await page.getByLabel("Code from the app").fill("000000");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("Enter the code that the app shows now.").waitFor();
  assert.equal((await page.locator(".secret code").textContent()).replaceAll(/\s/g, ""), key); // the secret in the app remains valid
  await checkAccess(page);
  await page.getByLabel("Code from the app").fill(totp(key));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Save your recovery codes" }).waitFor();
  assert.ok((await page.locator(".codes li").count()) >= 8);
  await checkAccess(page);
  await page.getByRole("link", { name: "I've saved them" }).click();
  await page.waitForURL(/\/console\/demo\/users$/);
});

scenario("a user works in two tenants side by side, and switches with two clicks", async (page) => {
  const password = "another long enough password";
  await command(password, "tenant", "create", "globex", "--display-name", "Globex Corporation", "--owner-email", owner, "--owner-name", "Ada Lovelace", "--password-stdin");
  await signIn(page);
  await page.getByText("Demo Incorporated").click();
  await page.getByRole("link", { name: "Sign in to another tenant" }).click();
  await page.getByRole("link", { name: "Demo Incorporated" }).waitFor();
  await checkAccess(page);
  await page.getByLabel("Tenant", { exact: true }).fill("globex");
  await page.getByLabel("Email").fill(owner);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.waitForURL("/console/globex/home");

  await page.getByText("Globex Corporation").click();
  await page.getByRole("link", { name: "Demo Incorporated" }).click();
  await page.waitForURL("/console/demo/home");
  await page.locator(".brand-tenant", { hasText: "Demo Incorporated" }).waitFor(); // the other page has a button to sign out too
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL((url) => url.pathname === "/console/demo/sign-in"); // the page removes its parameter done
  await page.goto("/console/globex/users");
  await page.getByRole("heading", { name: "Users" }).waitFor();
});
