// An application on another site than Rolecall, with its own pages and its own mail. README.md describes it.

import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import express, { type ErrorRequestHandler, type Request, type Response } from "express";
import { Guard, ProblemError, Refusal, Rolecall, type Schemas, WebhookVerifier } from "@rolecall/client";
import { Outbox } from "./outbox.js";
import * as pages from "./pages.js";
import { Sessions } from "./sessions.js";

/** Returns a variable of the environment. */
function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

const baseUrl = setting("IDENTITY_URL");
const origin = setting("APP_URL"); // the origin of this application
const operator = (tenant?: string) => new Rolecall({ baseUrl: process.env["OPERATOR_URL"] ?? baseUrl, token: setting("OPERATOR_KEY"), ...(tenant ? { tenant } : {}) });
const verifier = new WebhookVerifier(readFileSync(setting("MAIL_KEY_FILE"), "utf8").trim());
const outbox = new Outbox(setting("MAIL_FOLDER"));
const sessions = new Sessions(baseUrl, Number(process.env["REFRESH_SECONDS"] ?? "3600"));
const guard = new Guard<{ headers: { authorization: string }; tenant: string }>({ baseUrl, tenant: ({ tenant }) => tenant });

const app = express();

// Rolecall sends each mail here. The response is sent when the mail is on the disk, so no crash loses it.
app.post("/mail", express.raw({ type: () => true, limit: "100kb" }), async (request, response) => {
  try {
    await verifier.verify(request.headers, request.body as Buffer);
  } catch {
    return void response.sendStatus(400);
  }
  await outbox.store(String(request.headers["webhook-id"]), request.body as Buffer);
  response.sendStatus(204);
});

app.use(express.urlencoded({ extended: false }));

// Refuses forms of other sites. Otherwise, another site could sign the user in with another account.
app.use((request, _, next) => {
  const site = request.headers["sec-fetch-site"] ?? "none";
  const isOwn = request.method === "GET" || site === "same-origin" || site === "none";
  next(isOwn ? undefined : new Refusal(403, "cross-site", "This form is on another site."));
});

const tenantOf = (request: Request) => String(request.params["tenant"]);
const fieldsOf = (request: Request) => request.body as Record<string, string>;
/** The client of a browser without a session. It reports the address of the browser, which Rolecall limits. */
const visitor = (request: Request) =>
  new Rolecall({ baseUrl, tenant: tenantOf(request), headers: { "x-forwarded-for": request.socket.remoteAddress ?? "", "user-agent": request.headers["user-agent"] ?? "" } });

/** Keeps the tokens of a sign-in, and shows the home page. */
function enter(request: Request, response: Response, signIn: Schemas["SignIn"]): void {
  sessions.start(request, response, tenantOf(request), signIn);
  response.redirect(303, `/${tenantOf(request)}/home`);
}

// Sign-up: a customer creates a tenant. Both requests have the key of the form, so a form that is sent twice has one effect.
app.get("/", (_, response) => void response.send(pages.signUp(randomBytes(16).toString("hex"))));
app.post("/sign-up", async (request, response) => {
  const { company = "", name = "", email = "", once = "" } = fieldsOf(request);
  const headers = { "idempotency-key": once };
  await operator().POST("/operator/tenants", { body: { name: company, owner: { name, email } }, headers });
  await operator(company).POST("/roles", { body: { key: "accountant", name: "Accountant", permissions: ["shop/invoices:read"] }, headers });
  response.send(pages.notice("We sent you a link."));
});

// The pages behind the links in mail. The token is in the fragment of the address, which only the page reads.
app.get("/:tenant/welcome", (_, response) => void response.send(pages.newPassword("Choose a password")));
app.post("/:tenant/welcome", async (request, response) => {
  const { token = "", password = "" } = fieldsOf(request);
  const { data } = await visitor(request).POST("/auths/invitations/accept", { body: { token, password, transport: "bearer", ...sessions.device(request) } });
  enter(request, response, data);
});
app.get("/:tenant/forgotten", (_, response) => void response.send(pages.forgotten()));
app.post("/:tenant/forgotten", async (request, response) => {
  const { data } = await visitor(request).POST("/auths/password-resets", { body: { email: fieldsOf(request)["email"] ?? "" } });
  response.send(pages.notice(data.detail)); // the same for every address
});
app.get("/:tenant/password", (_, response) => void response.send(pages.newPassword("Choose a new password")));
app.post("/:tenant/password", async (request, response) => {
  const { token = "", password = "" } = fieldsOf(request);
  await visitor(request).POST("/auths/password-resets/complete", { body: { token, password } });
  response.redirect(303, `/${tenantOf(request)}/sign-in`);
});

// Sign-in with a password, and with a code if the user has a second factor.
app.get("/:tenant/sign-in", async (request, response) => {
  const { data } = await visitor(request).GET("/auths/connections");
  response.send(pages.signIn(tenantOf(request), data.items));
});
app.post("/:tenant/sign-in", async (request, response) => {
  const { email = "", password = "" } = fieldsOf(request);
  enter(request, response, await visitor(request).signIn({ email, password, transport: "bearer", ...sessions.device(request) }));
});
app.post("/:tenant/second-factor", async (request, response) => {
  const { challenge = "", code = "" } = fieldsOf(request);
  enter(request, response, (await visitor(request).POST("/auths/login/second-factor", { body: { challenge, code } })).data);
});

// Sign-in with the identity provider of the customer. With the verifier in a cookie, the code works in no other browser.
app.post("/:tenant/sign-in-with/:connection", async (request, response) => {
  const secret = randomBytes(32).toString("base64url");
  const { data } = await visitor(request).POST("/auths/oidc/start", {
    body: {
      connectionId: String(request.params["connection"]), returnTo: `${origin}/${tenantOf(request)}/signed-in`,
      codeChallenge: createHash("sha256").update(secret).digest("base64url"),
    },
  });
  sessions.keepVerifier(response, secret);
  response.redirect(303, data.url);
});
app.get("/:tenant/signed-in", async (request, response) => {
  const { code, error } = request.query;
  if (error !== undefined) return void response.status(403).send(pages.notice("The sign-in has failed."));
  const { data } = await visitor(request).POST("/auths/codes/exchange", { body: { code: String(code), codeVerifier: sessions.verifier(request), transport: "bearer", ...sessions.device(request) } });
  enter(request, response, data);
});

// Pages of signed-in users. One request checks all permissions that the page needs.
app.get("/:tenant/home", async (request, response) => {
  const user = await sessions.client(request, tenantOf(request));
  const checks = ["shop/invoices:approve", "users:invite"].map((permission) => ({ permission }));
  const [{ data: session }, { data: checked }] = await Promise.all([user.GET("/auths/session"), user.POST("/auths/checks", { body: { checks } })]);
  response.send(pages.home(tenantOf(request), session.principal.name, checked.results.map(({ allowed }) => allowed)));
});
app.post("/:tenant/invoices/:id/approve", async (request, response) => {
  const { token = "" } = await sessions.client(request, tenantOf(request));
  const { session } = await guard.authorize({ headers: { authorization: `Bearer ${token}` }, tenant: tenantOf(request) }, "shop/invoices:approve");
  response.send(pages.notice(`${session.principal.name} approved the invoice ${request.params["id"]}.`));
});
app.post("/:tenant/colleagues", async (request, response) => {
  const { name = "", email = "" } = fieldsOf(request);
  const user = await sessions.client(request, tenantOf(request));
  await user.POST("/users", { body: { name, email, invite: true } });
  response.send(pages.notice(`We sent ${name} a link.`));
});
app.post("/:tenant/sign-out", async (request, response) => {
  await (await sessions.client(request, tenantOf(request))).signOut();
  sessions.end(request, response);
  response.redirect(303, `/${tenantOf(request)}/sign-in`);
});

const failed: ErrorRequestHandler = (error: unknown, request, response, _next) => {
  const tenant = request.path.split("/")[1] ?? "";
  if (error instanceof ProblemError && error.code === "second-factor-required") {
    response.status(401).send(pages.secondFactor(tenant, error.body.challenge ?? ""));
  } else if (error instanceof ProblemError) {
    response.status(error.status).send(pages.notice([error.detail, ...error.errors.map(({ detail }) => detail)].join(" ")));
  } else if (error instanceof Refusal) {
    response.status(error.status).send(pages.notice(error.message));
  } else {
    console.error(error);
    response.status(503).send(pages.notice("Try again in a minute."));
  }
};
app.use(failed);

const server = createServer({ cert: readFileSync(setting("TLS_CERT")), key: readFileSync(setting("TLS_KEY")) }, app);
server.listen(Number(new URL(origin).port || "443"), "127.0.0.1", () => console.log(`serving ${origin}`));
outbox.run();
