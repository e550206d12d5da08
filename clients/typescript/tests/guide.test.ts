// Packs the client, installs it from the packed file into an empty project, and runs the code of the guide there.

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { access, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { hanging, password, repository, run, stores, until, World } from "./program.js";

const here = fileURLToPath(new URL("clients/typescript/", repository));

describe("the packed client in an empty project", hanging, () => {
  let project: string;
  let environment: NodeJS.ProcessEnv;
  before(async () => {
    project = await mkdtemp(join(tmpdir(), "rolecall-shop-"));
    await run("npm", ["pack", "--silent", "--pack-destination", project], { cwd: here });
    const [packed] = await readdir(project);
    await writeFile(join(project, "package.json"), '{"name":"shop","private":true,"type":"module"}');
    await run("npm", ["install", "--silent", "--no-audit", "--no-fund", "--prefer-offline", `./${packed}`], { cwd: project });
    await mkdir(join(project, "node_modules/@types"));
    for (const name of ["express", "@types/express", "@types/node"]) await symlink(join(here, "node_modules", name), join(project, "node_modules", name));
    environment = { ...process.env };
    const guide = await readFile(new URL("docs/guides/typescript.md", repository), "utf8");
    const blocks = Array.from(guide.matchAll(/^```ts\n(.*?)^```$/gms), ([, code = ""]) => code);
    assert.equal(blocks.length, 3);
    await mkdir(join(project, "app"));
    for (const [i, file] of ["server.ts", "app/route.ts", "app/memory.ts"].entries()) await writeFile(join(project, file), blocks[i]!);
    await run(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--strict", "--target", "es2022", "--lib", "es2022", "--types", "node", "--module", "nodenext", "server.ts", "app/route.ts", "app/memory.ts"], { cwd: project });
  });
  after(() => rm(project, { recursive: true, force: true }));

  test("the package has no other dependency at run time, and runs outside of Node.js", async () => {
    const installed = join(project, "node_modules/@rolecall/client");
    const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8")) as { dependencies: object; repository: { url: string } };
    assert.deepEqual(Object.keys(manifest.dependencies), ["openapi-fetch"]);
    assert.equal(manifest.repository.url, "git+https://github.com/rolecall/rolecall.git");
    const links = Array.from((await readFile(join(installed, "README.md"), "utf8")).matchAll(/\]\(([^)]+)\)/g), ([, link = ""]) => link);
    for (const link of links) {
      assert.match(link, /^https:/); // other links do not work on a package registry
      const [, path] = /^https:\/\/github\.com\/rolecall\/rolecall\/blob\/main\/([^#]+)/.exec(link) ?? [];
      if (path !== undefined) await access(new URL(path, repository));
    }
    assert.deepEqual((await readdir(installed)).sort(), ["LICENSE", "README.md", "dist", "package.json"]);
    for (const file of await readdir(join(installed, "dist"))) {
      const code = await readFile(join(installed, "dist", file), "utf8");
      if (file.startsWith("testing.")) continue; // it needs Node.js
      for (const [, name = ""] of code.matchAll(/^(?:import|export) .*"([^"]+)";$/gm)) assert.match(name, /^(\.\/\w+\.js|openapi-fetch|openapi-typescript-helpers)$/, file);
      if (file.endsWith(".js")) assert.doesNotMatch(code, /\b(process|Buffer|require)\b[.(]/, file);
    }
  });

  test("the guide about tests", async () => {
    const guide = await readFile(new URL("docs/guides/testing.md", repository), "utf8");
    const blocks = Array.from(guide.matchAll(/^```ts\n(.*?)^```$/gms), ([, code = ""]) => code);
    assert.equal(blocks.length, 2);
    for (const [i, file] of ["app.ts", "app.test.ts"].entries()) await writeFile(join(project, file), blocks[i]!);
    await run(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--strict", "--target", "es2022", "--module", "nodenext", "app.ts", "app.test.ts"], { cwd: project });
    const words = ["-u", "NODE_TEST_CONTEXT", process.execPath, "--test", "--test-reporter=tap", "app.test.js"]; // as if no test ran it
    assert.match(await run("env", words, { cwd: project }), /^# pass 2$/m);
  });

  for (const store of stores) {
    describe(`on ${store}`, () => {
      let world: World;
      let shop: ChildProcess;
      let base: string;
      before(async () => {
        world = await World.start(store, (folder) => ({ flags: ["--mailbox", join(folder, "mail"), "--trusted-proxies", "127.0.0.1"] }));
        shop = spawn("node", ["server.js"], { cwd: project, env: { ...environment, IDENTITY_URL: world.base, OPERATOR_KEY: world.operatorKey, PORT: "0" }, stdio: ["ignore", "pipe", "inherit"] });
        base = await new Promise((resolve, reject) => {
          createInterface(shop.stdout!).on("line", (line) => {
            const port = /port: (\d+)/.exec(line)?.[1];
            if (port) resolve(`http://127.0.0.1:${port}`);
          });
          shop.on("exit", () => reject(new Error("the application ended")));
        });
      });
      after(async () => {
        await new Promise((resolve) => {
          shop.removeAllListeners("exit").on("exit", resolve);
          shop.kill();
        });
        await world.stop();
      });

      const post = (path: string, fields: Record<string, string>, cookie = "") =>
        fetch(base + path, { method: "POST", body: new URLSearchParams({ once: `key-${world.next()}`, ...fields }), redirect: "manual", headers: { cookie } });
      const get = (path: string, cookie = "") => fetch(base + path, { redirect: "manual", headers: { cookie } });

      /** Waits for the invitation of an address, and accepts it. */
      async function accept(tenant: string, email: string): Promise<void> {
        const token = await until(async () => {
          for (const name of await readdir(join(world.folder, "mail")).catch(() => [])) {
            const mail = (await readFile(join(world.folder, "mail", name), "utf8")).replaceAll("=\r\n", "").replaceAll("=3D", "=");
            if (mail.includes(email)) return /invitation#([\w-]+)/.exec(mail)?.[1];
          }
          return undefined;
        });
        await world.anonymous({ tenant }).POST("/auths/invitations/accept", { body: { token, password } });
      }

      async function signIn(tenant: string, email: string): Promise<string> {
        const response = await post(`/${tenant}/sign-in`, { email, password });
        assert.equal(response.headers.get("location"), `/${tenant}/home`);
        return response.headers.getSetCookie().map((line) => line.split(";")[0]).join("; ");
      }

      test("the application of the guide", async () => {
        assert.match(await (await get("/")).text(), /action="&#47;sign-up"|action="\/sign-up"/);
        const customer = { company: "globex", name: "Olga Owner", email: "olga@globex.example", once: "the-form" };
        assert.equal((await post("/sign-up", customer)).status, 200);
        assert.equal((await post("/sign-up", customer)).status, 200); // the form was sent twice
        const invalid = await post("/sign-up", { ...customer, once: "other", company: "initech", email: "olga" });
        assert.equal(invalid.status, 422);
        assert.match(await invalid.text(), /\/owner\/email/);
        await accept("globex", customer.email);
        assert.equal((await post("/globex/sign-in", { email: customer.email, password: "wrong" })).status, 401);
        const form = new URLSearchParams({ email: customer.email, password });
        const foreign = await fetch(`${base}/globex/sign-in`, { method: "POST", body: form, redirect: "manual", headers: { "sec-fetch-site": "cross-site" } });
        assert.equal(foreign.status, 403);
        assert.deepEqual(foreign.headers.getSetCookie(), []);
        const olga = await signIn("globex", customer.email);
        assert.match(await (await get("/globex/home", olga)).text(), /Hello Olga Owner.*approve/s);
        assert.equal((await get("/globex/home")).headers.get("location"), "/globex/sign-in");
        assert.equal((await get("/acme/home", olga)).headers.get("location"), "/acme/sign-in");
        for (const [name, department, status] of [["Sam Sales", "Sales", 200], ["Dora Design", "Design", 403]] as const) {
          const email = `${name.split(" ")[0]!.toLowerCase()}@globex.example`;
          const invited = await post("/globex/colleagues", { name, email, department }, olga);
          assert.equal(invited.status, 200, await invited.text());
          await accept("globex", email);
          const colleague = await signIn("globex", email);
          assert.equal((await (await get("/globex/home", colleague)).text()).includes("/invoices/7/approve"), status === 200);
          const approved = await post("/globex/invoices/7/approve", {}, colleague);
          assert.equal(approved.status, status);
          assert.equal((await approved.text()).includes(`${name} approved the invoice 7`), status === 200);
          assert.equal((await post("/globex/colleagues", { name: "X Y Z", email: "x@globex.example", department }, colleague)).status, 403);
        }
        const out = await post("/globex/sign-out", {}, olga);
        assert.equal(out.headers.get("location"), "/globex/sign-in");
        assert.equal((await get("/globex/home", olga)).headers.get("location"), "/globex/sign-in");
      });

      test("the route handler of Next.js", async () => {
        process.env["IDENTITY_URL"] = world.base;
        const { GET } = (await import(`${pathToFileURL(join(project, "app/route.js"))}?${store}`)) as { GET: (request: Request) => Promise<Response> };
        const owner = await world.owner();
        const { client, user } = await world.member(owner, ["shop/invoices:read"]);
        const other = await world.member(owner, []);
        const handle = (tenant: string, token: string | undefined) => GET(new Request(`http://app/${tenant}/invoices`, { headers: token ? { authorization: `Bearer ${token}` } : {} }));
        assert.deepEqual(await (await handle("acme", client.token)).json(), { invoicesFor: user.id });
        assert.equal((await handle("acme", other.client.token)).status, 403);
        assert.equal((await handle("acme", undefined)).status, 401);
        assert.equal((await handle("nowhere", client.token)).status, 401);
        assert.equal(((await (await handle("acme", undefined)).json()) as { code: string }).code, "unauthenticated");
      });
    });
  }
});
