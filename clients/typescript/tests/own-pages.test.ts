// Runs the application in examples/own-pages against the program and an OpenID provider.

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Rolecall } from "../src/index.js";
import { Browser } from "./browser.js";
import { hanging, password, repository, run, stores, until, World } from "./program.js";

const here = fileURLToPath(new URL("clients/typescript/", repository));
const publicUrl = "https://id.example.com";
const owner = { company: "globex", name: "Olga Owner", email: "olga@globex.example" };

/** Starts a Node.js program, and returns when it prints a line that begins with the word. */
async function node(word: string, words: string[], environment: NodeJS.ProcessEnv = {}): Promise<{ process: ChildProcess; line: string }> {
  const child = spawn(process.execPath, words, { env: { ...process.env, ...environment }, stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => void (line.startsWith(word) && resolve(line)));
    child.on("exit", (code) => reject(new Error(`${words[0]} ended with ${code}`)));
  });
  return { process: child, line };
}

function kill(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.removeAllListeners("exit").on("exit", () => resolve());
    child.kill("SIGKILL");
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The example imports @rolecall/client. Here, this is the compiled source. */
async function installClient(): Promise<void> {
  const folder = join(here, ".build/node_modules/@rolecall/client");
  await mkdir(folder, { recursive: true });
  await writeFile(join(here, ".build/package.json"), '{"type":"module"}');
  await writeFile(join(folder, "package.json"), '{"name":"@rolecall/client","type":"module","exports":"./src/index.js"}');
  await rm(join(folder, "src"), { force: true });
  await symlink(join(here, ".build/src"), join(folder, "src"));
}

describe("the application with its own pages", { concurrency: stores.length, ...hanging }, () => {
  before(installClient);
  for (const store of stores) describe(`on ${store}`, { concurrency: 1 }, () => {
    let world: World;
    let provider: ChildProcess;
    let shop: ChildProcess;
    let origin: string;
    let browser: Browser;
    const file = (name: string) => join(world.folder, name);
    const startShop = async () => {
      shop = (await node("serving", [join(here, ".build/examples/own-pages/server.js")], {
        IDENTITY_URL: world.base, OPERATOR_KEY: world.operatorKey, APP_URL: origin, MAIL_KEY_FILE: file("mail.key"), MAIL_FOLDER: file("outbox"),
        TLS_CERT: file("cert.pem"), TLS_KEY: file("key.pem"), REFRESH_SECONDS: "0",
      })).process;
    };
    const newBrowser = async () => new Browser(await readFile(file("cert.pem")), { [publicUrl]: world.base });

    before(async () => {
      world = await World.start(store, async (folder) => {
        const certificate = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
        await run("openssl", ["req", ...certificate, "-keyout", join(folder, "key.pem"), "-out", join(folder, "cert.pem")]);
        await writeFile(join(folder, "mail.key"), `whsec_${Buffer.alloc(32, "k").toString("base64")}\n`, { mode: 0o600 });
        origin = `https://127.0.0.1:${await freePort()}`;
        return {
          flags: [
            "--public-url", publicUrl, "--mail-webhook", `${origin}/mail`, "--mail-webhook-key-file", join(folder, "mail.key"), "--mail-webhook-networks", "127.0.0.0/8",
            "--invitation-url", `${origin}/{tenant}/welcome#{token}`, "--password-reset-url", `${origin}/{tenant}/password#{token}`,
            "--oidc-return-urls", `${origin}/{tenant}/signed-in`, "--oidc-networks", "127.0.0.0/8,::1/128", "--trusted-proxies", "127.0.0.1",
          ],
          environment: { SSL_CERT_FILE: join(folder, "cert.pem") },
        };
      });
      await startShop();
      browser = await newBrowser();
    });
    after(async () => {
      for (const child of [shop, provider]) if (child !== undefined) await kill(child);
      await world.stop();
    });

    /** Waits for a mail to the address that contains the text, and returns the link in it. */
    const linkFor = (email: string, text: string) => until(async () => {
      for (const name of await readdir(file("outbox/sent"))) {
        if (!name.endsWith(".txt")) continue;
        const mail = await readFile(join(file("outbox/sent"), name), "utf8");
        if (mail.includes(`To: ${email}\n`) && mail.includes(text)) return new URL(/https:\S+/.exec(mail)![0]);
      }
      return undefined;
    });
    /** Opens the page of a link, and sends its form, as its script does. */
    const choosePassword = async (link: URL, chosen: string) => {
      const page = await browser.visit(link);
      assert.equal(page.url.origin, origin);
      return browser.submit(page, "Save", { password: chosen, token: link.hash.slice(1) });
    };
    const signIn = async (email: string, secret: string) => browser.submit(await browser.visit(`${origin}/globex/sign-in`), "Sign in", { email, password: secret });

    test("sign-up, invitation, reset, sign-in, refresh and permission checks", async () => {
      const form = await browser.visit(origin);
      for (let i = 0; i < 2; i++) assert.match((await browser.submit(form, "Sign up", owner)).text, /We sent you a link/); // it is sent twice
      const home = await choosePassword(await linkFor(owner.email, "Welcome to the shop of globex"), password);
      assert.equal(home.url.pathname, "/globex/home");
      assert.match(home.text, /Hello Olga Owner.*Approve.*Invite/s);
      const device = browser.cookie(origin, "device");
      assert.ok(device);

      // Each of three requests replaces the token, because REFRESH_SECONDS is 0.
      const refreshes = () => world.log.match(/"route":"\/auths\/refresh","status":200/g)?.length ?? 0;
      for (let i = 0; i < 2; i++) assert.equal((await browser.visit(`${origin}/globex/home`)).status, 200);
      await until(() => (refreshes() === 3 ? true : undefined));
      assert.match((await browser.submit(home, "Approve")).text, /Olga Owner approved the invoice 7/);
      assert.match((await browser.submit(home, "Invite", { name: "Carl Colleague", email: "carl@globex.example" })).text, /We sent Carl Colleague a link/);
      assert.equal((await browser.submit(home, "Sign out")).url.pathname, "/globex/sign-in");
      assert.equal((await browser.visit(`${origin}/globex/home`)).status, 401);

      // The colleague has no role, so no button, and the server refuses the requests as well.
      const carl = await choosePassword(await linkFor("carl@globex.example", "Welcome"), password);
      assert.match(carl.text, /Hello Carl Colleague/);
      assert.doesNotMatch(carl.text, /Approve|Invite/);
      assert.equal((await browser.visit(`${origin}/globex/invoices/7/approve`, {})).status, 403);
      assert.equal((await browser.visit(`${origin}/acme/home`)).status, 401); // a session is of one tenant
      await browser.submit(carl, "Sign out");

      const asked = await browser.submit(await browser.visit(`${origin}/globex/forgotten`), "Send", { email: owner.email });
      const unknown = await browser.submit(await browser.visit(`${origin}/globex/forgotten`), "Send", { email: "nobody@globex.example" });
      assert.equal(asked.text, unknown.text);
      const changed = await choosePassword(await linkFor(owner.email, "new password"), "another correct horse");
      assert.equal(changed.url.pathname, "/globex/sign-in");
      assert.equal((await signIn(owner.email, password)).status, 401);
      const again = await signIn(owner.email, "another correct horse");
      assert.match(again.text, /Hello Olga Owner/);
      await browser.submit(again, "Sign out");

      browser.site = "cross-site"; // a page of another site sends the form
      assert.match((await browser.visit(`${origin}/globex/sign-in`, { email: owner.email, password: "another correct horse" })).text, /on another site/);
      browser.site = undefined;
      assert.equal((await browser.visit(`${origin}/globex/home`)).status, 401);
    });

    /** Returns a client of the owner of globex. */
    async function globexOwner(): Promise<Rolecall> {
      const client = world.anonymous({ tenant: "globex" });
      await client.signIn({ email: owner.email, password: "another correct horse", transport: "bearer" });
      return client;
    }

    test("sign-in with an identity provider", async () => {
      const started = await node("issuer", [join(here, "tests/idp.mjs"), file("cert.pem"), file("key.pem"), `${publicUrl}/auths/oidc/callback/`]);
      provider = started.process;
      const issuer = started.line.split(" ")[1]!;
      const connection = { name: "Globex SSO", issuer, clientId: "rolecall", clientSecret: "the secret of rolecall", linking: "verified-email" as const, domains: ["globex.example"] };
      await (await globexOwner()).POST("/connections", { body: connection });
      const employee = await newBrowser();
      const login = await employee.submit(await employee.visit(`${origin}/globex/sign-in`), "Sign in with Globex SSO");
      assert.equal(login.url.origin, issuer);
      const consent = await employee.submit(login, "Sign-in", { login: "carl@globex.example", password: "any" });
      assert.equal(consent.url.origin, issuer);
      const page = await employee.submit(consent, "Continue");
      assert.equal(page.url.pathname, "/globex/home", page.text);
      assert.match(page.text, /Hello Carl Colleague/);

      // A code works only in the browser that has started the sign-in, and an error starts no session.
      const { url } = await employee.submit(await employee.visit(`${origin}/globex/sign-in`), "Sign in with Globex SSO", {}, `${origin}/globex/signed-in`);
      assert.match(url.search, /code=/);
      assert.equal((await (await newBrowser()).visit(url)).status, 401);
      assert.equal((await employee.visit(`${origin}/globex/signed-in?error=identity-unknown`)).status, 403);
    });

    test("a browser that is known may sign in while others are blocked", async () => {
      await signIn(owner.email, "another correct horse");
      const stranger = await newBrowser();
      const page = await stranger.visit(`${origin}/globex/sign-in`);
      await until(async () => ((await stranger.submit(page, "Sign in", { email: owner.email, password: "wrong" })).status === 429 ? true : undefined));
      assert.equal((await stranger.submit(page, "Sign in", { email: owner.email, password: "another correct horse" })).status, 429);
      assert.match((await signIn(owner.email, "another correct horse")).text, /Hello Olga Owner/);
    });

    test("no mail is lost if the application is killed", async () => {
      const inviter = await world.owner();
      const waiting = async () => (await readdir(file("outbox/waiting"))).filter((name) => name.endsWith(".json")).length;
      const invited: string[] = [];
      for (let left = 0; left === 0; ) { // until a kill leaves mail that is stored and not sent
        assert.ok(invited.length < 400, "no kill left a mail");
        const names = Array.from({ length: 20 }, () => `person-${world.next()}@example.com`);
        const creating = (async () => {
          for (const email of names) await inviter.POST("/users", { body: { email, name: "A Person", invite: true } });
        })();
        await until(async () => ((await waiting()) > 0 ? true : undefined));
        await kill(shop);
        left = await waiting();
        await startShop();
        await creating;
        invited.push(...names);
      }
      for (const email of invited) assert.ok((await linkFor(email, "Welcome to the shop of acme")).hash.length > 20);
      await until(async () => ((await waiting()) === 0 ? true : undefined)); // the last one is removed after it was sent
    });
  });
});
