import createClient, { type MaybeOptionalInit, type Middleware, type ParseAsResponse } from "openapi-fetch";
import type { HttpMethod, PathsWithMethod, RequiredKeysOf } from "openapi-typescript-helpers";
import { type components, keyedPaths, type paths } from "./openapi.js";
import { problemOf } from "./problem.js";
import { type RetryOptions, retrying } from "./retry.js";

/** Schemas has the types of the OpenAPI document by name, for example Schemas["User"]. */
export type Schemas = components["schemas"];

/** RolecallOptions are the options of a client. */
export interface RolecallOptions {
  /** The address of the service, which can have a base path. */
  baseUrl: string;
  /** The name of the tenant. Only operations below /operator need none. */
  tenant?: string;
  /** An API token (rc_…), an operator key (rco_…), or the token of a session (rs_…). */
  token?: string;
  /**
   * The header cookie of a request that a server received from a browser. The client sends the cookies of the
   * session and of the known device, and no others. In a browser, leave it out.
   */
  cookie?: string;
  /**
   * Other headers of each request, for example x-forwarded-for. With authorization or cookie, here or in a call, the
   * client neither sends nor changes its own credentials.
   */
  headers?: Record<string, string>;
  /** Whether a browser sends its cookies to another origin. Ignored with a token. Default: same-origin. */
  credentials?: "omit" | "same-origin" | "include";
  /** When a request is repeated. False: never. */
  retry?: RetryOptions | false;
  /**
   * Milliseconds without a response, or without a further part of a streamed body, after which a connection counts
   * as lost. 0: never. Default: 60,000, more than any wait for changes.
   */
  timeout?: number;
  /** Sends a request. Default: the global fetch. */
  fetch?: (request: Request) => Promise<Response>;
  /** Is called when the client gets a new session token (rs_…), before it uses it. Store it here. */
  onToken?: (token: string) => void | Promise<void>;
}

const defaultTimeout = 60_000;

type Init<P extends PathsWithMethod<paths, M>, M extends HttpMethod> = MaybeOptionalInit<paths[P], M>;

/** The last parameter of a call is optional if the operation needs no parameter and no body. */
type InitParam<I> = RequiredKeysOf<I> extends never ? [init?: I] : [init: I];

type Success = 200 | 201 | 202 | 204;

/** The body of a successful response: undefined if it has none, as with the status 204. */
type Content<O> = O extends { responses: infer R }
  ? { [S in keyof R & Success]: R[S] extends { content: infer C } ? C[keyof C] : undefined }[keyof R & Success]
  : never;

type Data<P extends PathsWithMethod<paths, M>, M extends HttpMethod, I> = ParseAsResponse<Content<paths[P][M]>, I>;

/** A request with if-none-match can have the response 304, which has no data. */
type Conditional<I, D> = I extends { params: { header: { "if-none-match": string } } } ? D | undefined : D;

/**
 * Call sends a request. It returns the data and the response, whose headers have for example the ETag. It
 * rejects with a ProblemError if the status is 400 or higher, and with a LostConnectionError if there was no
 * complete response.
 */
export type Call<M extends HttpMethod> = <P extends PathsWithMethod<paths, M>, I extends Init<P, M>>(
  path: P,
  ...init: InitParam<I>
) => Promise<{ data: Conditional<I, Data<P, M, I>>; response: Response }>;

/** ListPath is the path of a list that has pages. */
export type ListPath = {
  [P in PathsWithMethod<paths, "get">]: null extends PageOf<P>["nextCursor"] ? P : never;
}[PathsWithMethod<paths, "get">];

type PageOf<P extends PathsWithMethod<paths, "get">> = Data<P, "get", object> extends infer D
  ? D extends { items: unknown[]; nextCursor: string | null } ? D : { items: never[]; nextCursor: "" }
  : never;

/** ItemOf is the type of the items of a list. */
export type ItemOf<P extends ListPath> = PageOf<P>["items"][number];

/**
 * Rolecall sends the requests of one caller. Paths, parameters, bodies and responses have the types of the
 * OpenAPI document. The client adds the tenant, the credentials and an idempotency key, which it creates
 * once per call and keeps in all repetitions.
 */
export class Rolecall {
  readonly GET: Call<"get">;
  readonly POST: Call<"post">;
  readonly PUT: Call<"put">;
  readonly PATCH: Call<"patch">;
  readonly DELETE: Call<"delete">;
  readonly #options: RolecallOptions;
  #cookies: string[];
  #token: string | undefined;

  constructor(options: RolecallOptions) {
    this.#options = options;
    this.#token = options.token;
    this.#cookies = (options.cookie ?? "").split(/;\s*/).filter((pair) => isOurs(nameOf(pair)));
    const send = options.fetch ?? ((request: Request) => globalThis.fetch(request));
    const client = createClient<paths>({
      baseUrl: options.baseUrl,
      fetch: retrying(send, options.retry === false ? { limit: 0 } : (options.retry ?? {}), this.timeout),
      bodySerializer: (body: unknown) => (isBytes(body) ? body : JSON.stringify(body)),
      headers: { accept: "application/json, application/problem+json, */*", ...options.headers },
    });
    client.use(this.#middleware());
    this.GET = client.GET as unknown as Call<"get">;
    this.POST = client.POST as unknown as Call<"post">;
    this.PUT = client.PUT as unknown as Call<"put">;
    this.PATCH = client.PATCH as unknown as Call<"patch">;
    this.DELETE = client.DELETE as unknown as Call<"delete">;
  }

  /** The current session token (rs_…), API token or operator key. Undefined with a cookie, and when signed out. */
  get token(): string | undefined {
    return this.#token;
  }

  /** Milliseconds after which a connection without a response counts as lost. Infinity: never. */
  get timeout(): number {
    return this.#options.timeout === 0 ? Infinity : (this.#options.timeout ?? defaultTimeout);
  }

  /**
   * Signs a user in with a password. With the transport bearer, the client then sends the returned token. With
   * cookie (the default), a browser keeps the cookies, and elsewhere the client does. If a second factor is
   * needed, it rejects with a ProblemError with the code second-factor-required: send its body.challenge to
   * POST /auths/login/second-factor.
   */
  async signIn(credentials: Schemas["Login"]): Promise<Schemas["SignIn"]> {
    return (await this.POST("/auths/login", { body: credentials })).data;
  }

  /** Replaces the token of the session, which extends the session. Call it about once an hour. */
  async refresh(): Promise<Schemas["SignIn"]> {
    return (await this.POST("/auths/refresh")).data;
  }

  /** Ends the session. An API token and an operator key stay. */
  async signOut(): Promise<void> {
    const ended = this.#token;
    await this.POST("/auths/logout");
    if (ended === this.#token && isSessionToken(ended)) this.#token = undefined;
  }

  /**
   * Returns the items of a list, page by page. It ends only when the service returns a null cursor: a page can
   * be short or empty before that.
   *
   *     for await (const user of rolecall.items("/users", { params: { query: { department: "Sales" } } })) { … }
   */
  async *items<P extends ListPath, I extends Init<P, "get">>(path: P, ...[init]: InitParam<I>): AsyncGenerator<ItemOf<P>, void, undefined> {
    const get = this.GET as unknown as (path: string, init: object) => Promise<{ data: { items: ItemOf<P>[]; nextCursor: string | null } }>;
    const { params, ...others } = (init ?? {}) as { params?: { query?: object } };
    for (let query = params?.query; ; ) {
      const { data } = await get(path, { ...others, params: { ...params, query } });
      yield* data.items;
      if (data.nextCursor === null) return;
      query = { ...params?.query, cursor: data.nextCursor };
    }
  }

  #middleware(): Middleware {
    /** Requests with the credentials of this client, and not with those of a caller. */
    const own = new WeakSet<Request>();
    return {
      onRequest: ({ request, schemaPath }) => {
        const { headers } = request;
        const { tenant, credentials } = this.#options;
        if (tenant !== undefined && !headers.has("x-tenant-schema")) headers.set("x-tenant-schema", tenant);
        if (request.method === "POST" && keyedPaths.has(schemaPath) && !headers.has("idempotency-key")) {
          headers.set("idempotency-key", newKey());
        }
        if (headers.has("authorization") || headers.has("cookie")) return new Request(request, { credentials: "omit" });
        let sent = credentials === undefined ? request : new Request(request, { credentials });
        if (this.#token !== undefined) {
          headers.set("authorization", `Bearer ${this.#token}`);
          sent = new Request(request, { credentials: "omit" });
        } else if (this.#cookies.length > 0) {
          sent.headers.set("cookie", this.#cookies.join("; "));
        }
        own.add(sent);
        return sent;
      },
      onResponse: async ({ request, response, schemaPath }) => {
        if (response.status >= 400) {
          if (own.has(request)) this.#keepCookies(request, response);
          throw await problemOf(response);
        }
        if (own.has(request)) {
          this.#keepCookies(request, response);
          if (request.method === "POST" && schemaPath.startsWith("/auths/")) await this.#keepToken(response.clone());
        }
        return undefined;
      },
    };
  }

  /**
   * Keeps the cookies of the session and of the known device, unless the request had a token. In a browser,
   * scripts do not see them. Without the known-device cookie, Rolecall would mail the user about each sign-in.
   */
  #keepCookies(request: Request, response: Response): void {
    if (request.headers.has("authorization")) return;
    const sent = (request.headers.get("cookie") ?? "").split("; ");
    for (const line of setCookiesOf(response.headers)) {
      const [pair = "", ...attributes] = line.split(/;\s*/);
      const name = nameOf(pair);
      if (!isOurs(name)) continue;
      const isCleared = pair === `${name}=` || attributes.some((attribute) => /^max-age=(0|-\d+)$/i.test(attribute));
      // A response clears only a cookie that its request had, because a sign-in can have set another one since.
      const others = this.#cookies.filter((kept) => nameOf(kept) !== name || (isCleared && !sent.includes(kept)));
      this.#cookies = isCleared ? others : [...others, pair];
    }
  }

  /** Keeps the token of a session that a response has. */
  async #keepToken(response: Response): Promise<void> {
    if (!response.headers.get("content-type")?.startsWith("application/json")) return;
    const { token } = (await response.json()) as { token?: unknown };
    if (typeof token !== "string" || !isSessionToken(token)) return;
    await this.#options.onToken?.(token);
    this.#token = token;
  }
}

/** Returns the headers Set-Cookie. Platforms without getSetCookie join them with commas, which dates have too. */
function setCookiesOf(headers: Headers): string[] {
  if ("getSetCookie" in headers) return headers.getSetCookie();
  return ((headers as Headers).get("set-cookie") ?? "").split(/,\s*(?=[^;,\s=]+=)/);
}

function nameOf(pair: string): string {
  return pair.split("=", 1)[0]!;
}

/** Reports whether a cookie is that of the session or of the known device. */
function isOurs(name: string): boolean {
  return /^(__Host-)?(session|rolecall_device)$/.test(name);
}

function isSessionToken(token: string | undefined): boolean {
  return token?.startsWith("rs_") ?? false;
}

function isBytes(body: unknown): boolean {
  return body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body) || body instanceof ReadableStream;
}

/** Returns a new idempotency key. crypto.randomUUID does not exist in pages without TLS. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
