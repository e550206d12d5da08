import type { Rolecall, Schemas } from "./client.js";
import type { paths } from "./openapi.js";
import { LostConnectionError, ProblemError } from "./problem.js";
import { backoff, rest } from "./retry.js";

/** ChangeType is a type of events, such as user.updated. */
export type ChangeType = NonNullable<NonNullable<paths["/changes"]["get"]["parameters"]["query"]>["type"]>;

/** FollowOptions say what to do with the changes. */
export interface FollowOptions {
  /** The cursor that was stored last. Undefined: there is no copy yet, so begin with walk. */
  cursor?: string | undefined;
  /**
   * Reads the lists, replaces the copy, and stores the cursor in the same transaction. It is called if there is
   * no cursor, and if changes after the cursor cannot be read without a gap.
   */
  walk: (cursor: string) => void | Promise<void>;
  /**
   * Applies the changes, and stores the cursor in the same transaction. It is also called without changes, from
   * time to time.
   */
  handle: (changes: Schemas["Change"][], cursor: string) => void | Promise<void>;
  /** Follows only changes of this type. A cursor is valid only for its type. */
  type?: ChangeType;
  /** Follows the changes of all tenants, with an operator key that has the scope changes. */
  allTenants?: boolean;
  /** The maximum number of changes of a call of handle. Default: that of the service. */
  limit?: number;
  /** Ends the function. */
  signal: AbortSignal;
}

/** Seconds that a request waits for a change. */
const longestWait = 20;
const shortestPause = 500;
const longestPause = 30_000;

/**
 * follow keeps a copy of the data of a tenant up to date: it walks, and then follows the changes. While the
 * service is unreachable, too busy or restarting, it tries again. It returns when the signal is aborted. It
 * rejects after any other problem, and with the errors of walk and handle: call it again with the cursor that
 * was stored last.
 */
export async function follow(rolecall: Rolecall, options: FollowOptions): Promise<void> {
  const { walk, handle, type, limit, signal } = options;
  const path = options.allTenants ? "/operator/changes" : "/changes";
  const get = async (query: { at?: "now"; after?: string; wait?: number; limit?: number }) =>
    (await rolecall.GET(path, { params: { query: { ...query, ...(type === undefined ? {} : { type }) } }, signal })).data as Schemas["Changes"];
  // The response must arrive before the timeout of the client.
  const wait = Math.min(longestWait, Math.floor(rolecall.timeout / 2000));
  let cursor = options.cursor;
  for (let failures = 0; !signal.aborted; ) {
    let page: Schemas["Changes"];
    try {
      page = await get(cursor === undefined ? { at: "now" } : { after: cursor, wait, ...(limit === undefined ? {} : { limit }) });
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ProblemError && error.status === 410) {
        cursor = undefined;
        continue;
      }
      if (!isTemporary(error)) throw error;
      const least = error instanceof ProblemError ? (error.retryAfter ?? 0) * 1000 : 0;
      await rest(backoff(failures++, least, shortestPause, longestPause), signal).catch(() => undefined);
      continue;
    }
    if (cursor === undefined) await walk(page.nextCursor);
    else await handle(page.items, page.nextCursor);
    cursor = page.nextCursor;
    if (wait === 0 && page.upToDate) await rest(shortestPause, signal).catch(() => undefined);
  }
}

/** Reports whether the same request can succeed later. */
export function isTemporary(error: unknown): boolean {
  return error instanceof LostConnectionError || (error instanceof ProblemError && (error.status === 429 || error.status === 503));
}
