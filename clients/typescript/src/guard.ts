import { Rolecall, type RolecallOptions, type Schemas } from "./client.js";
import { isTemporary } from "./changes.js";
import { PrincipalMemory } from "./memory.js";
import { type In, type Matcher, matcher } from "./permissions.js";
import { isProgramError, ProblemError } from "./problem.js";
import { type HeaderSource, headerOf } from "./webhooks.js";

/** RequestLike is a request of Node.js, Express, Fastify or the web, or a context of Hono. */
export type RequestLike = RequestHead | { readonly req: { readonly raw: RequestHead } };

interface RequestHead {
  readonly headers: HeaderSource;
  /** Without a method, the request counts as one that changes something. */
  readonly method?: string | undefined;
}

/** MemoryOptions let a Guard keep principals in memory. */
export interface MemoryOptions {
  /**
   * The API token of a service account that has changes:read in the whole tenant. For several tenants: an operator
   * key (rco_…) with the scope changes, whose tenants are kept and followed by one feed, or a function that returns
   * the token of a tenant, or undefined to keep nothing of the tenant.
   */
  token: string | ((tenant: string) => string | undefined);
  /** The address that answers requests for changes, such as that of --operator-listen. Default: baseUrl. */
  feedUrl?: string;
  /** The maximum number of principals. Default: 10,000. */
  entries?: number;
  /**
   * Is called when the change feed cannot be read. Requests then read their principals from Rolecall. The tenant is
   * empty for the feed of all tenants.
   */
  onError?: (error: unknown, tenant: string) => void;
}

/** GuardOptions are the options of a Guard. */
export interface GuardOptions<R extends RequestLike> extends Pick<RolecallOptions, "baseUrl" | "fetch"> {
  /** Milliseconds in which Rolecall must answer, with at most one repetition. Default: 1,000. */
  timeout?: number;
  /** The tenant, or a function that returns the tenant of a request. */
  tenant: string | ((request: R) => string | undefined);
  /** Keeps principals in memory. Without it, each check is a request to Rolecall. */
  memory?: MemoryOptions;
}

/** Refusal is the error of a request that is not allowed, or that cannot be decided. Express, Fastify and Hono answer with its status. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  /** 401: not signed in. 403: not allowed, or sent by a page of another site. 503: Rolecall is unreachable. Others are the status of Rolecall. */
  readonly status: number;
  /** A stable code, for example unauthenticated. */
  readonly code: string;

  constructor(status: number, code: string, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.status = status;
    this.code = code;
  }

  /** The status, as Fastify names it. */
  get statusCode(): number {
    return this.status;
  }

  /** Returns a response with the refusal as problem details. Hono calls it. */
  getResponse(): Response {
    const { status, code, message: detail } = this;
    return Response.json({ code, status, detail }, { status, headers: { "content-type": "application/problem+json" } });
  }
}

/** Principal is who sent a request: a user, or a program. Do not change it, because requests share it. */
export class Principal {
  /** The response of GET /auths/session. */
  readonly session: Schemas["CurrentSession"];
  /** When the session, its token, the API token or an assignment expires, in milliseconds. Infinity: never. */
  readonly validUntil: number;
  /** Reports whether the principal has a permission, as the function can does. */
  readonly can: Matcher;

  constructor(session: Schemas["CurrentSession"]) {
    this.session = session;
    this.can = matcher(session);
    const ends = [session.permissionsExpireAt, session.session?.expiresAt, session.session?.idleExpiresAt, session.session?.tokenExpiresAt];
    this.validUntil = Math.min(...ends.map((end) => (typeof end === "string" ? Date.parse(end) : Infinity)));
  }

  /** The id of the user or the program. */
  get id(): string {
    return this.session.principal.id;
  }

  /** user, service_account or operator. */
  get type(): string {
    return this.session.principal.type;
  }

  /** The name of the tenant. */
  get tenant(): string {
    return this.session.tenant.name;
  }
}

interface Credentials {
  name: "cookie" | "authorization";
  value: string;
}

/** Guard finds out who sent a request to your server, and whether that principal has a permission. */
export class Guard<R extends RequestLike = RequestHead> {
  readonly #tenant: GuardOptions<R>["tenant"];
  readonly #rolecall: Rolecall;
  readonly #timeout: number;
  readonly #memory: PrincipalMemory | undefined;
  readonly #tokenOf: (tenant: string) => string | undefined;
  /** With an operator key: whether it is for the tenant. */
  readonly #covered = new Map<string, Promise<boolean>>();
  readonly #covers: ((tenant: string) => Promise<boolean>) | undefined;

  constructor(options: GuardOptions<R>) {
    const { baseUrl, timeout = 1000, fetch, memory } = options;
    this.#timeout = timeout;
    this.#tenant = options.tenant;
    const sending = { baseUrl, ...(fetch === undefined ? {} : { fetch }) };
    this.#rolecall = new Rolecall({ ...sending, retry: { limit: 1, pause: 100, longestPause: timeout }, timeout });
    const token = memory?.token;
    this.#tokenOf = typeof token === "function" ? token : () => token;
    if (memory === undefined) return;
    const feed = new Rolecall({ ...sending, baseUrl: memory.feedUrl ?? baseUrl, retry: false, timeout: 800 });
    const read = async (path: "/changes" | "/operator/changes", tenant: string, after?: string) => {
      const query = after === undefined ? { at: "now" as const } : { after, limit: 200 };
      const headers = { ...(tenant === "" ? {} : { "x-tenant-schema": tenant }), authorization: `Bearer ${this.#tokenOf(tenant)}` };
      return (await feed.GET(path, { params: { query }, headers })).data as Schemas["Changes"];
    };
    const isOfAll = typeof token === "string" && token.startsWith("rco_");
    const readChanges = (tenant: string, after: string | undefined) => read(isOfAll ? "/operator/changes" : "/changes", tenant, after);
    const onError = memory.onError ?? (() => undefined);
    this.#memory = new PrincipalMemory(readChanges, memory.entries ?? 10_000, onError, isOfAll);
    if (!isOfAll) return;
    // The feed of a key that is limited to other tenants has no changes of this one, and looks the same.
    this.#covers = (tenant) => read("/changes", tenant).then(() => true, (error: unknown) => {
      if (!(error instanceof ProblemError) || isTemporary(error)) this.#covered.delete(tenant);
      onError(error, tenant);
      return false;
    });
  }

  /** Reports whether the feed has the changes of the tenant. */
  #follows(tenant: string): Promise<boolean> | boolean {
    if (this.#covers === undefined) return Boolean(this.#tokenOf(tenant));
    const known = this.#covered.get(tenant);
    if (known !== undefined) return known;
    const found = this.#covers(tenant);
    this.#covered.set(tenant, found);
    return found;
  }

  /**
   * Returns who sent the request, or null if it has no valid session or token. It rejects with a Refusal if
   * Rolecall refuses the request for another reason, or is unreachable. It also rejects if a page of another
   * site sends a change with the cookie of the session.
   */
  principal(request: R): Promise<Principal | null> {
    const head: RequestHead = "headers" in request ? request : request.req.raw;
    const tenant = typeof this.#tenant === "string" ? this.#tenant : this.#tenant(request);
    const credentials = credentialsOf(head.headers);
    if (tenant === undefined || !tenantName.test(tenant) || credentials === null) return Promise.resolve(null);
    if (credentials.name === "cookie" && isCrossSite(head)) return Promise.reject(new Refusal(403, "cross-site", "This request is from another site."));
    const kept = this.#memory?.get(tenant, credentials.value);
    if (kept instanceof Promise) return kept.then((principal) => principal ?? this.#read(tenant, credentials));
    return kept === undefined ? this.#read(tenant, credentials) : Promise.resolve(kept);
  }

  /**
   * Returns who sent the request. It rejects with a Refusal if the request has no valid session or token, or if a permission is given
   * and the principal does not have it.
   */
  async authorize(request: R, permission?: string, where?: In): Promise<Principal> {
    const principal = await this.principal(request);
    if (principal === null) throw new Refusal(401, "unauthenticated", "Sign in first.");
    if (permission !== undefined && !principal.can(permission, where)) {
      throw new Refusal(403, "permission-denied", `This needs the permission ${permission}.`);
    }
    return principal;
  }

  async #read(tenant: string, { name, value }: Credentials): Promise<Principal | null> {
    const readAt = performance.now();
    try {
      const { data } = await this.#rolecall.GET("/auths/session", { headers: { "x-tenant-schema": tenant, [name]: value }, signal: AbortSignal.timeout(this.#timeout) });
      const principal = new Principal(data);
      // Operators are in no feed of a tenant.
      if (this.#memory && principal.type !== "operator" && (await this.#follows(tenant))) this.#memory.put(tenant, value, principal, readAt);
      return principal;
    } catch (error) {
      this.#memory?.remove(tenant, value);
      if (isProgramError(error)) throw error;
      if (error instanceof ProblemError && error.status === 401) return null;
      if (isTemporary(error) || !(error instanceof ProblemError) || error.status >= 500) {
        throw new Refusal(503, "unavailable", "Please try again in a minute.", { cause: error });
      }
      throw new Refusal(error.status, error.code, error.detail, { cause: error });
    }
  }
}

// The names that tenants can have. A name that an application takes from a request can be anything.
const tenantName = /^[a-z0-9][a-z0-9_-]{0,62}$/;

const safeMethods = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/**
 * Reports whether a page of another site sends a change, or opens a WebSocket. Browsers add the session cookie to
 * some of its requests, and the header Sec-Fetch-Site or at least Origin to all.
 */
function isCrossSite({ method = "", headers }: RequestHead): boolean {
  if (safeMethods.has(method.toUpperCase()) && headerOf(headers, "upgrade") === "") return false;
  const [site, origin] = [headerOf(headers, "sec-fetch-site"), headerOf(headers, "origin")];
  if (site !== "") return !["same-origin", "none"].includes(site);
  return origin !== "" && origin.replace(/^.*:\/\//, "").toLowerCase() !== hostOf(headers);
}

/** Returns the host to which a request was sent. In Node, HTTP/2 has another name for it. */
function hostOf(headers: HeaderSource): string {
  return (headerOf(headers, "host") || (headers instanceof Headers ? "" : headerOf(headers, ":authority"))).toLowerCase();
}

const sessionCookie = /(?:^|;\s*)((?:__Host-)?session=[^;]*)/g;

/** Returns the session cookies or the token of a request, and nothing else of it, or null. */
function credentialsOf(headers: HeaderSource): Credentials | null {
  const authorization = headerOf(headers, "authorization");
  if (/^[Bb]earer +r[sc]_/.test(authorization)) return { name: "authorization", value: authorization };
  const cookies = Array.from(headerOf(headers, "cookie").matchAll(sessionCookie), ([, cookie]) => cookie);
  return cookies.length > 0 ? { name: "cookie", value: cookies.join("; ") } : null;
}

const principals = new WeakMap<object, Principal>();

/** Remembers the principal of a request of a framework. */
export function remember(request: object, principal: Principal): void {
  principals.set(request, principal);
}

/** Returns the principal that a middleware has found. It throws an error behind no middleware. */
export function principalOf(request: object): Principal {
  const principal = principals.get(request);
  if (principal === undefined) throw new Error("no middleware of @rolecall/client has seen this request");
  return principal;
}
