// The sessions of the application. Browsers get a cookie of the application, and no token of Rolecall.

import { randomBytes } from "node:crypto";
import type { CookieOptions, Request, Response } from "express";
import { Refusal, Rolecall, type Schemas } from "@rolecall/client";

interface Session {
  tenant: string;
  client: Rolecall;
  refreshedAt: number;
  refreshing?: Promise<unknown>;
}

const cookie: CookieOptions = { httpOnly: true, secure: true, sameSite: "lax", path: "/" };
const deviceDays = 90;

/** Sessions keeps sessions in memory. With several servers, keep the tokens in your database, encrypted. */
export class Sessions {
  readonly #sessions = new Map<string, Session>();

  constructor(private readonly baseUrl: string, private readonly refreshSeconds: number) {}

  /** Starts a session, and stores the device token in the browser for the next sign-in. */
  start(request: Request, response: Response, tenant: string, { token, deviceToken }: Schemas["SignIn"]): void {
    this.end(request, response); // a session of another user must not go on
    const id = randomBytes(32).toString("base64url");
    const client = new Rolecall({ baseUrl: this.baseUrl, tenant, token: token! });
    this.#sessions.set(id, { tenant, client, refreshedAt: Date.now() });
    response.cookie("shop", id, cookie);
    if (deviceToken !== undefined) response.cookie("device", deviceToken, { ...cookie, maxAge: deviceDays * 86_400_000 });
  }

  /** Returns the client of a signed-in user. About once an hour, it replaces the token of the session. */
  async client(request: Request, tenant: string): Promise<Rolecall> {
    const session = this.#sessions.get(valueOf(request, "shop") ?? "");
    if (session?.tenant !== tenant) throw new Refusal(401, "unauthenticated", "Sign in first.");
    if (Date.now() - session.refreshedAt >= this.refreshSeconds * 1000) {
      session.refreshing ??= session.client.refresh().then(() => (session.refreshedAt = Date.now())).finally(() => delete session.refreshing);
      await session.refreshing; // requests at the same time wait for the same token
    }
    return session.client;
  }

  end(request: Request, response: Response): void {
    this.#sessions.delete(valueOf(request, "shop") ?? "");
    response.clearCookie("shop", cookie);
  }

  /** Returns the device token of the browser, for a sign-in. */
  device(request: Request): { deviceToken?: string } {
    const deviceToken = valueOf(request, "device");
    return deviceToken === undefined ? {} : { deviceToken };
  }

  /** Keeps the verifier of a sign-in with an identity provider in the browser that has started it. */
  keepVerifier(response: Response, verifier: string): void {
    response.cookie("verifier", verifier, { ...cookie, maxAge: 600_000 });
  }

  verifier(request: Request): string {
    return valueOf(request, "verifier") ?? "";
  }
}

function valueOf(request: Request, name: string): string | undefined {
  const pair = (request.headers.cookie ?? "").split(/;\s*/).find((found) => found.startsWith(`${name}=`));
  return pair === undefined ? undefined : decodeURIComponent(pair.slice(name.length + 1));
}
