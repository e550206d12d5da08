// Signs in on the sign-in page of the console with Chromium, through the providers that run.js has started.
// The harness starts the program on SQLite, or on PostgreSQL if ROLECALL_TEST_POSTGRES is set. Each store has its port,
// so that both can be tested at once.

import { strict as assert } from "node:assert";
import { call, command, first, mailLink, newContext, person, readPicture, scenario, signedIn, signIn, totp, until, world } from "../../console/e2e/harness.js";

const providers = JSON.parse(process.env.ROLECALL_TEST_PROVIDERS);

world.port = Number(process.env.ROLECALL_TEST_PORTS.split(",")[process.env.ROLECALL_TEST_POSTGRES ? 1 : 0]);
const fonts = "https://fonts.googleapis.com"; // the pages of oidc-provider load a font
world.elsewhere = [fonts, ...providers.map((provider) => new URL(provider.issuer).origin)];
world.environment = { SSL_CERT_FILE: providers[0].roots };
world.flags = ["--oidc-networks", "127.0.0.0/8,::1/128"];

/** forms fill in the pages with which each provider signs a person in. */
const forms = {
  "oidc-provider": async (page, { email, password }) => {
    await page.locator("input[name=login]").fill(email);
    await page.locator("input[name=password]").fill(password);
    await page.getByRole("button", { name: "Sign-in" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
  },
  Keycloak: async (page, { email, password, totpSecret }) => {
    await page.locator("input[name=username]").fill(email);
    await page.locator("input[name=password]").fill(password);
    await page.getByRole("button", { name: "Sign In" }).click();
    if (!totpSecret) return;
    await page.locator("input[name=otp]").fill(totp(totpSecret));
    await page.getByRole("button", { name: "Sign In" }).click();
  },
};

/** authenticate signs the person in on the pages of the provider, which must show its form. */
async function authenticate(page, provider, someone) {
  await page.waitForURL((url) => url.origin === new URL(provider.issuer).origin);
  await forms[provider.name](page, someone);
  await page.waitForURL((url) => url.origin === world.base);
}

/** openProvider opens the sign-in page of the console and selects the provider. */
async function openProvider(page, provider) {
  await page.goto("/console/demo/sign-in");
  await page.getByRole("button", { name: `Sign in with ${provider.name}` }).click();
}

/** signInThrough signs the person in with the provider, from the sign-in page of the console. */
async function signInThrough(page, provider, someone) {
  await openProvider(page, provider);
  await authenticate(page, provider, someone);
}

/** session returns the user and the session of the console. */
async function session(page) {
  const { status, body } = await call(page, "GET", "/auths/session");
  assert.equal(status, 200);
  return body;
}

/**
 * through tests with each provider. play gets a page without a session, the provider, its connection, and a
 * function that sends a request as the owner of the tenant. The connection has the members of more. At the end,
 * the connection and the users of the persons are deleted, and the tenant requires no second factor.
 */
function through(name, play, more = () => ({})) {
  for (const provider of providers) {
    scenario(`${provider.name}: ${name}`, async (page) => {
      const context = await newContext();
      const owner = await context.newPage();
      await signIn(owner);
      const asOwner = async (method, path, body) => {
        const answer = await call(owner, method, path, body, { "idempotency-key": crypto.randomUUID() });
        assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
        return answer.body;
      };
      const viewer = await first(owner, "/roles?key=viewer");
      const { issuer, clientId, clientSecret } = provider;
      const connection = await asOwner("POST", "/connections", { name: provider.name, issuer, clientId, clientSecret, ...more(viewer.id) });
      await page.context().route(`${fonts}/**`, (route) => route.fulfill({ contentType: "text/css", body: "" }));
      try {
        await play(page, provider, asOwner, viewer.id);
      } finally {
        await asOwner("DELETE", `/connections/${connection.id}?force=true`);
        await asOwner("PATCH", "/tenant", { settings: { secondFactor: { required: "none" } } });
        for (const { email } of [provider.person, provider.careful, provider.stranger]) {
          const user = await person(owner, email);
          if (user) await asOwner("DELETE", `/users/${user.id}`);
        }
        await context.close();
      }
    }, { ignoreHTTPSErrors: true });
  }
}

const provisions = (roleId) => ({ provisioning: { roleIds: [roleId], department: "Sales" } });

through("the link of an invitation leads through the provider, and the identity is linked to the invited user", async (page, provider, asOwner) => {
  const { person: invited } = provider;
  const user = await asOwner("POST", "/users", { email: invited.email, name: "Ada Invited" });
  await asOwner("POST", `/users/${user.id}/invitations`);
  await page.goto(await mailLink(invited.email, "invitation"));
  await page.getByRole("button", { name: `Accept with ${provider.name}` }).click();
  await authenticate(page, provider, invited);
  await page.getByRole("heading", { level: 1 }).waitFor();
  const { items } = await asOwner("GET", `/users/${user.id}/identities`);
  assert.deepEqual(items.map((i) => [i.issuer, i.email]), [[provider.issuer, invited.email]]);
  assert.equal((await asOwner("GET", `/users/${user.id}`)).status, "active");

  await page.context().clearCookies({ domain: "localhost", name: /^(session|console-.*)$/ });
  await openProvider(page, provider); // which still knows the person, and shows no form
  await page.waitForURL("/console/demo/**");
  await signedIn(page);
  assert.equal((await session(page)).user.id, user.id);
});

through("the first sign-in creates a user with the role and the department of the connection", async (page, provider, asOwner, viewer) => {
  await signInThrough(page, provider, provider.person);
  await signedIn(page);
  const { user } = await session(page);
  const made = await asOwner("GET", `/users/${user.id}`);
  assert.deepEqual([made.email, made.name, made.department, made.status], [provider.person.email, provider.person.name, "Sales", "active"]);
  assert.deepEqual((await asOwner("GET", `/users/${user.id}/roles`)).items.map((held) => held.role.id), [viewer]);
}, provisions);

through("an unknown identity is refused, and no user is created", async (page, provider, asOwner) => {
  await signInThrough(page, provider, provider.stranger);
  await page.waitForURL((url) => url.searchParams.get("why") === "identity-unknown");
  await page.getByText("This account isn't linked to a user here.").waitFor();
  assert.equal((await call(page, "GET", "/auths/session")).status, 401);
  assert.deepEqual((await asOwner("GET", `/users?email=${encodeURIComponent(provider.stranger.email)}`)).items, []);
});

through("the provider's second factor is trusted if it has stated it, and otherwise Rolecall requires its own", async (page, provider, asOwner, viewer) => {
  await asOwner("PATCH", "/tenant", { settings: { secondFactor: { required: "roles", roles: [viewer] } } });
  await signInThrough(page, provider, provider.careful);
  await signedIn(page);
  assert.equal((await session(page)).session.secondFactor, true);

  await page.context().clearCookies();
  await signInThrough(page, provider, provider.person);
  await page.getByRole("heading", { name: "Set up a second factor" }).waitFor();
  assert.equal((await call(page, "GET", "/auths/session")).status, 401);
}, (roleId) => ({ ...provisions(roleId), secondFactor: "trust", amrValues: ["otp"] }));

through("Rolecall requires its own second factor if the connection does not trust that of the provider", async (page, provider, asOwner, viewer) => {
  await asOwner("PATCH", "/tenant", { settings: { secondFactor: { required: "roles", roles: [viewer] } } });
  await signInThrough(page, provider, provider.careful);
  const secret = new URL(await readPicture(page)).searchParams.get("secret");
  await page.getByRole("textbox").first().fill(totp(secret));
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "I've saved them" }).click();
  await signedIn(page);

  await page.context().clearCookies();
  await signInThrough(page, provider, provider.careful);
  await page.getByLabel("Code from your authenticator app").fill(totp(secret, 1));
  await page.keyboard.press("Enter");
  await signedIn(page);
  assert.equal((await session(page)).session.secondFactor, true);
}, provisions);

/** formsAgain fill in the pages with which each provider authenticates a person again whom it knows. */
const formsAgain = {
  "oidc-provider": async (page, { email, password }) => {
    await page.locator("input[name=login]").fill(email);
    await page.locator("input[name=password]").fill(password);
    await page.getByRole("button", { name: "Sign-in" }).click();
  },
  Keycloak: async (page, { password }) => {
    await page.locator("input[name=password]").fill(password);
    await page.getByRole("button", { name: "Sign In" }).click();
  },
};

/** setReauthentication sets the maximum age of a sign-in for step-up. An operator key needs no step-up itself. */
async function setReauthentication(seconds) {
  const { key } = JSON.parse(await command("", "operator-key", "create", `Step-up ${crypto.randomUUID()}`, "--json"));
  const { status } = await fetch(`${world.base}/tenant`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${key}`, "x-tenant-schema": "demo", "content-type": "application/json" },
    body: JSON.stringify({ settings: { reauthenticationSeconds: seconds } }),
  });
  assert.equal(status, 200);
}

through("a person without a password confirms a form at the provider, and its input is kept", async (page, provider) => {
  await signInThrough(page, provider, provider.person);
  await signedIn(page);
  const confirm = page.getByRole("link", { name: "Confirm with your company's sign-in" });
  const { user } = await session(page);
  await setReauthentication(1);
  await until(async () => {
    await page.goto(`/console/demo/users/${user.id}/tokens/create`);
    return (await confirm.count()) > 0;
  });
  await setReauthentication(900);
  assert.equal(await page.getByLabel("Your password").count(), 0);
  const name = page.getByRole("textbox", { name: "Name" });
  await name.fill("Nightly import");
  await confirm.click();
  await page.getByRole("button", { name: `Confirm with ${provider.name}` }).click();
  await page.waitForURL((url) => url.origin === new URL(provider.issuer).origin);
  await formsAgain[provider.name](page, provider.person);
  await page.getByText("Your input is back").waitFor();
  assert.equal(await name.inputValue(), "Nightly import");
}, provisions);

/** confirmSignOut answers the question of a provider whether to sign out. */
const confirmSignOut = {
  "oidc-provider": (page) => page.getByRole("button", { name: "Yes, sign me out" }).click(),
  Keycloak: () => {}, // it does not ask, because it gets the ID token
};

through("a sign-out in the console leads to the provider, ends the session there too, and leads back", async (page, provider) => {
  await signInThrough(page, provider, provider.person);
  await signedIn(page);
  const { user } = await session(page);
  await page.goto(`/console/demo/users/${user.id}/sessions`);
  await page.getByText(`Signed in with ${provider.name}`).waitFor();
  await page.goto("/console/demo/sign-out");
  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await confirmSignOut[provider.name](page);
  await page.waitForURL("/console/demo/sign-in?done=signed-out");
  await page.getByText("You're signed out.").waitFor();
  assert.equal((await call(page, "GET", "/auths/session")).status, 401);
  await signInThrough(page, provider, provider.person); // the provider shows its form
  await signedIn(page);
}, provisions);
