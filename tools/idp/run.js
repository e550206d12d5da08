// Starts two OpenID providers, oidc-provider and Keycloak, runs the command of the arguments, and stops
// them. The command gets the providers as JSON in ROLECALL_TEST_PROVIDERS.

import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { get, createServer as createSecureServer } from "node:https";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Provider from "oidc-provider";

const version = "26.7.3";
const sum = "77657f30b7e90d70f727712ce1c967f430fd6a5e9f458d32d8c6df0635345f47";
const startLimit = 300_000;

// The client and the person of both providers.
const client = { clientId: "rolecall", clientSecret: "the secret of rolecall" };
const person = { email: "ada@acme.example", name: "Ada Lovelace", password: "correct horse battery staple" };
const redirects = ["https://rolecall.example/auths/oidc/callback"];
const afterSignOut = ["https://rolecall.example/signed-out"];

const folder = mkdtempSync(join(tmpdir(), "rolecall-idp-"));
const cert = join(folder, "cert.pem");
const key = join(folder, "key.pem");
const ending = []; // functions that stop what was started

/** certify creates a certificate for localhost, which is also its authority. */
function certify() {
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], { stdio: "ignore" });
}

/** startNpm starts oidc-provider, and returns its issuer. Its page accepts every name and password. */
async function startNpm() {
  const server = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ending.push(() => server.closeAllConnections());
  const issuer = `https://localhost:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: client.clientId, client_secret: client.clientSecret, redirect_uris: redirects, post_logout_redirect_uris: afterSignOut }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: id, email_verified: true, name: person.name }) }),
    pkce: { required: () => true },
  });
  server.on("request", provider.callback());
  return issuer;
}

/** installKeycloak downloads Keycloak from Maven Central once, and returns its folder. */
async function installKeycloak() {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "rolecall");
  const home = join(cache, `keycloak-idp-${version}`);
  if (existsSync(home)) return home;
  mkdirSync(cache, { recursive: true });
  const partial = mkdtempSync(join(cache, "partial-"));
  ending.push(() => rmSync(partial, { recursive: true, force: true }));
  const response = await fetch(`https://repo.maven.apache.org/maven2/org/keycloak/keycloak-quarkus-dist/${version}/keycloak-quarkus-dist-${version}.tar.gz`);
  if (!response.ok) throw new Error(`Maven Central responded with ${response.status}`);
  const archive = Buffer.from(await response.arrayBuffer());
  if (createHash("sha256").update(archive).digest("hex") !== sum) throw new Error("the archive of Keycloak has another checksum");
  writeFileSync(join(partial, "archive.tar.gz"), archive);
  execFileSync("tar", ["xzf", "archive.tar.gz"], { cwd: partial });
  execFileSync(join(partial, `keycloak-${version}`, "bin", "kc.sh"), ["build", "--db=dev-mem", "--cache=local", "--health-enabled=false"], { stdio: "ignore" });
  renameSync(join(partial, `keycloak-${version}`), home);
  return home;
}

/** startKeycloak starts Keycloak with a database in memory, and returns the issuer of its realm. */
async function startKeycloak() {
  const home = await installKeycloak();
  const port = await freePort();
  const [firstName, lastName] = person.name.split(" ");
  mkdirSync(join(home, "data", "import"), { recursive: true });
  writeFileSync(join(home, "data", "import", "acme.json"), JSON.stringify({
    realm: "acme", enabled: true,
    users: [{
      username: person.email, email: person.email, emailVerified: true, firstName, lastName, enabled: true,
      credentials: [{ type: "password", value: person.password }],
    }],
    clients: [{
      clientId: client.clientId, secret: client.clientSecret, redirectUris: redirects, standardFlowEnabled: true,
      attributes: { "pkce.code.challenge.method": "S256", "post.logout.redirect.uris": afterSignOut.join("##") },
    }],
  }));
  const output = [];
  const server = spawn(join(home, "bin", "kc.sh"), ["start", "--optimized", "--import-realm", "--http-enabled=false", "--http-host=127.0.0.1", `--https-port=${port}`,
    `--https-certificate-file=${cert}`, `--https-certificate-key-file=${key}`, `--hostname=https://localhost:${port}`], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  server.stdout.on("data", (text) => output.push(text));
  server.stderr.on("data", (text) => output.push(text));
  ending.push(() => stopGroup(server.pid));
  const issuer = `https://localhost:${port}/realms/acme`;
  for (const end = Date.now() + startLimit; !(await responds(`${issuer}/.well-known/openid-configuration`)); await wait(500)) {
    if (server.exitCode !== null || Date.now() > end) throw new Error(`Keycloak did not start:\n${output.join("")}`);
  }
  return issuer;
}

function stopGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error; // it has ended
  }
}

function responds(url) {
  return new Promise((resolve) => {
    get(url, { ca: readFileSync(cert) }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", () => resolve(false));
  });
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

function stop() {
  for (const end of ending) end();
  rmSync(folder, { recursive: true, force: true });
}

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    stop();
    process.exit(1);
  });
}

try {
  certify();
  const issuers = { "oidc-provider": await startNpm(), Keycloak: await startKeycloak() };
  const providers = Object.entries(issuers).map(([name, issuer]) => ({ name, issuer, roots: cert, redirectUri: redirects[0], afterSignOut: afterSignOut[0], ...client, person }));
  const [command, ...args] = process.argv.slice(2);
  const test = spawn(command, args, { stdio: "inherit", env: { ...process.env, ROLECALL_TEST_PROVIDERS: JSON.stringify(providers) } });
  const [code] = await once(test, "exit");
  process.exitCode = code ?? 1;
} finally {
  stop();
}
process.exit();
