// Starts two OpenID providers, oidc-provider and Keycloak, runs the command of the arguments, and stops
// them. The command gets the providers as JSON in ROLECALL_TEST_PROVIDERS, and two ports on which it can
// start Rolecall, separated by a comma, in ROLECALL_TEST_PORTS.

import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { request, createServer as createSecureServer } from "node:https";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Provider from "oidc-provider";
import { freePort } from "../freeport.mjs";
import { patience } from "../patience.mjs";

const version = "26.7.3";
const sum = "77657f30b7e90d70f727712ce1c967f430fd6a5e9f458d32d8c6df0635345f47";

// The client of both providers.
const client = { clientId: "rolecall", clientSecret: "the secret of rolecall" };
const password = "correct horse battery staple";

/**
 * persons returns the persons of a provider, whose addresses are in the domain. The provider also requires a code
 * from Grace, whose authenticator app has the secret.
 */
const persons = (domain) => ({
  person: { email: `ada@${domain}`, name: "Ada Lovelace", password },
  careful: { email: `grace@${domain}`, name: "Grace Hopper", password, totpSecret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP" },
  stranger: { email: `stranger@${domain}`, name: "Sam Stranger", password },
});
const npmPersons = persons("npm.example");
const keycloakPersons = persons("keycloak.example");

// Where the providers may return the browser: to pages that do not exist, or to the program.
const ports = [await freePort(), await freePort()];
// Each connection has its own redirect URI, which ends with its id.
const origins = ["https://rolecall.example", ...ports.map((port) => `http://localhost:${port}`)];
const redirects = origins.map((origin) => `${origin}/auths/oidc/callback/`);
const afterSignOut = ["https://rolecall.example/signed-out", ...ports.map((port) => `http://localhost:${port}/console/demo/signed-out`)];

const folder = mkdtempSync(join(tmpdir(), "rolecall-idp-"));
const cert = join(folder, "cert.pem");
const key = join(folder, "key.pem");
const ending = []; // functions that stop what was started

/** certify creates a certificate for localhost, which is also its authority. */
function certify() {
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], { stdio: "ignore" });
}

/** NpmProvider is oidc-provider. Its page asks for no code, but it states that Grace has entered one. */
class NpmProvider extends Provider {
  interactionFinished(incoming, outgoing, result, options) {
    if (result.login?.accountId === npmPersons.careful.email) result.login.amr = ["pwd", "otp"];
    return super.interactionFinished(incoming, outgoing, result, options);
  }
}

/** startNpm starts oidc-provider, and returns its issuer. Its page accepts every name and password. */
async function startNpm() {
  const server = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ending.push(() => server.closeAllConnections());
  const issuer = `https://localhost:${server.address().port}`;
  const nameOf = (email) => Object.values(npmPersons).find((p) => p.email === email)?.name;
  const provider = new NpmProvider(issuer, {
    clients: [{ client_id: client.clientId, client_secret: client.clientSecret, redirect_uris: redirects.map((start) => `${start}id`), post_logout_redirect_uris: afterSignOut }],
    claims: { openid: ["sub", "amr"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: id, email_verified: true, name: nameOf(id) }) }),
    pkce: { required: () => true },
  });
  provider.Client.prototype.redirectUriAllowed = (uri) => redirects.some((start) => uri.startsWith(start));
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

/** requireJava throws if Java is missing, which Keycloak needs. */
function requireJava() {
  try {
    execFileSync("java", ["-version"], { stdio: "ignore" });
  } catch (error) {
    throw new Error("Keycloak needs Java 17 or newer: install a Java runtime", { cause: error });
  }
}

/** startKeycloak starts Keycloak with a database in memory, and returns the issuer of its realm. */
async function startKeycloak() {
  requireJava();
  const home = await installKeycloak();
  const port = await freePort();
  const output = [];
  const server = spawn(join(home, "bin", "kc.sh"), ["start", "--optimized", "--http-enabled=false", "--http-host=127.0.0.1", `--https-port=${port}`,
    `--https-certificate-file=${cert}`, `--https-certificate-key-file=${key}`, `--hostname=https://localhost:${port}`], {
    stdio: ["ignore", "pipe", "pipe"], detached: true, env: {
      ...process.env, KC_BOOTSTRAP_ADMIN_USERNAME: "admin", KC_BOOTSTRAP_ADMIN_PASSWORD: password,
      JAVA_OPTS_APPEND: "-XX:TieredStopAtLevel=1", // 23 s of processor time to start instead of 40 s
    },
  });
  server.stdout.on("data", (text) => output.push(text));
  server.stderr.on("data", (text) => output.push(text));
  ending.push(() => stopGroup(server.pid));
  const keycloak = `https://localhost:${port}`;
  // On busy cores it has started after 6 minutes.
  for (const end = Date.now() + 20 * patience; !(await responds(`${keycloak}/realms/master/.well-known/openid-configuration`)); await wait(500)) {
    if (server.exitCode !== null || Date.now() > end) throw new Error(`Keycloak did not start:\n${output.join("")}`);
  }
  await createRealm(keycloak);
  return `${keycloak}/realms/acme`;
}

const realm = {
  realm: "acme", enabled: true, users: Object.values(keycloakPersons).map(keycloakUser),
  // Keycloak accepts the policy of one-time codes only as a whole.
  otpPolicyType: "totp", otpPolicyAlgorithm: "HmacSHA1", otpPolicyInitialCounter: 0, otpPolicyDigits: 6, otpPolicyLookAheadWindow: 1, otpPolicyPeriod: 30,
  otpPolicyCodeReusable: true, // the tests sign in more often than every 30 seconds
  clients: [{
    clientId: client.clientId, secret: client.clientSecret, redirectUris: redirects.map((start) => `${start}*`), standardFlowEnabled: true,
    protocolMappers: [{ name: "amr", protocol: "openid-connect", protocolMapper: "oidc-amr-mapper", config: { "id.token.claim": "true" } }],
    attributes: { "pkce.code.challenge.method": "S256", "post.logout.redirect.uris": afterSignOut.join("##") },
  }],
};

/** keycloakUser returns a person in the form that Keycloak has for users. */
function keycloakUser({ email, name, password, totpSecret }) {
  const [firstName, lastName] = name.split(" ");
  const credentials = [{ type: "password", value: password }];
  if (totpSecret) {
    credentials.push({
      type: "otp", secretData: JSON.stringify({ value: totpSecret }),
      credentialData: JSON.stringify({ subType: "totp", digits: 6, period: 30, algorithm: "HmacSHA1", secretEncoding: "BASE32" }),
    });
  }
  return { username: email, email, emailVerified: true, firstName, lastName, enabled: true, credentials };
}

/** createRealm creates the realm with its users and the client, and sets the names that Keycloak states in amr. */
async function createRealm(keycloak) {
  const form = new URLSearchParams({ grant_type: "password", client_id: "admin-cli", username: "admin", password }).toString();
  const { access_token: token } = await send("POST", `${keycloak}/realms/master/protocol/openid-connect/token`, form, { "content-type": "application/x-www-form-urlencoded" });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  await send("POST", `${keycloak}/admin/realms`, JSON.stringify(realm), headers);
  const flows = `${keycloak}/admin/realms/acme/authentication`;
  const steps = await send("GET", `${flows}/flows/browser/executions`, undefined, headers);
  for (const [step, name] of [["auth-username-password-form", "pwd"], ["auth-otp-form", "otp"]]) {
    const { id } = steps.find((s) => s.providerId === step);
    const config = { alias: name, config: { "default.reference.value": name, "default.reference.maxAge": "3600" } };
    await send("POST", `${flows}/executions/${id}/config`, JSON.stringify(config), headers);
  }
}

/** send sends a request to a provider, and returns the JSON of its response. */
function send(method, url, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, ca: readFileSync(cert) }, async (response) => {
      const text = (await response.setEncoding("utf8").toArray()).join("");
      if (response.statusCode >= 300) reject(new Error(`${method} ${url} responded with ${response.statusCode}: ${text}`));
      else resolve(text && JSON.parse(text));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

function stopGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error; // it has ended
  }
}

const responds = (url) => send("GET", url).then(() => true, () => false);

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
  const shared = { roots: cert, redirectUri: `${redirects[0]}0198c1a5-0000-7000-8000-000000000000`, afterSignOut: afterSignOut[0], ...client };
  const providers = [
    { name: "oidc-provider", issuer: await startNpm(), ...shared, ...npmPersons },
    { name: "Keycloak", issuer: await startKeycloak(), ...shared, ...keycloakPersons },
  ];
  const [command, ...args] = process.argv.slice(2);
  const test = spawn(command, args, { stdio: "inherit", env: { ...process.env, ROLECALL_TEST_PROVIDERS: JSON.stringify(providers), ROLECALL_TEST_PORTS: ports.join() } });
  const [code] = await once(test, "exit");
  process.exitCode = code ?? 1;
} finally {
  stop();
}
process.exit();
