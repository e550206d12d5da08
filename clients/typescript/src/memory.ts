import type { Schemas } from "./client.js";
import { isTemporary } from "./changes.js";
import { ProblemError } from "./problem.js";
import { backoff } from "./retry.js";
import type { Principal } from "./guard.js";

/** How long after the last proof entries are used. */
const trustedFor = 800; // the rest of the second is for reading the principal again
/** The same with the feed of all tenants, into which a node of Rolecall puts events some milliseconds after their commit. */
const trustedForOfAll = 500;
/** The key of the feed of all tenants. */
const ofAll = "";
/** How old the last proof is when the feed is read again. */
const provenFor = 250;
/** A node can answer with data that is this old. So what is read this soon after a change can be older than the change. */
const nodeLag = 1000;
/**
 * How old an entry can be. Reading it again extends the idle timeout of the session. It is the default time for
 * which a replaced session token works, so that Rolecall sees a later use of the token.
 */
const rereadAfter = 10_000;
/** How long a poll can read one page after the other. */
const longestPoll = 500;
const shortestPause = 250;
const longestPause = 5000;
/** Tenants whose feeds are followed at the same time. */
const maxFeeds = 1000;

/** Limits the permissions and departments of all principals together: their average number for an entry of a full memory. */
const textsPerEntry = 100;

/** Reads the changes of a tenant, or of all tenants, after the cursor. Without a cursor, it returns no changes and the cursor of now. */
export type ReadChanges = (tenant: string, cursor: string | undefined) => Promise<Schemas["Changes"]>;

interface Entry {
  principal: Principal;
  /** The number of its permissions and departments. */
  texts: number;
  /** When the request was sent that read the principal. */
  readAt: number;
  /** The slots of the changes that affect the principal: of its id, and of its tenant. */
  slots: readonly [number, number];
}

/**
 * Feed is what is known of the changes of one tenant, or of all. The times are those of the clock of the memory.
 * Changes are kept in a constant number of slots, by the id of the principal or the name of the tenant. Several
 * of them share a slot, which can cause unnecessary reads, and no other effect.
 */
class Feed {
  cursor: string | undefined;
  /** The memory contains the effects of all changes that were committed before this time. */
  provenAt = -Infinity;
  /** When the last change of all principals was received. */
  all = Infinity;
  readonly slots = new Float64Array(slots).fill(-Infinity);
  polling: Promise<void> | undefined;
  failures = 0;
  pausedUntil = -Infinity;

  /** When the last change of the slots was received. */
  changedAt([id, tenant]: readonly [number, number]): number {
    return Math.max(this.all, this.slots[id] ?? Infinity, this.slots[tenant] ?? Infinity);
  }
}

const slots = 1024;

/** Returns the slot of an id or a name (FNV-1a). */
function slotOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % slots;
}

/** Returns the number of permissions and departments of the session. */
function textsOf({ permissions, scopedPermissions }: Schemas["CurrentSession"]): number {
  return scopedPermissions.reduce((sum, scope) => sum + scope.permissions.length + scope.reach.departments.length, permissions.length);
}

/**
 * PrincipalMemory keeps principals by credentials. An entry is used only while the change feed shows that
 * nothing has revoked it. There are no timers: a lookup that needs a newer proof reads the feed.
 * A full memory removes the oldest entries. A principal can have 50,000 permissions, so their number is limited too.
 */
export class PrincipalMemory {
  readonly #entries = new Map<string, Entry>();
  /** The number of permissions and departments of all entries. */
  #texts = 0;
  readonly #feeds = new Map<string, Feed>();

  constructor(
    private readonly readChanges: ReadChanges,
    private readonly maxEntries: number,
    private readonly onError: (error: unknown, tenant: string) => void,
    /** Whether one feed has the changes of all tenants. */
    private readonly isOfAll: boolean = false,
    private readonly now: () => number = () => performance.now(),
  ) {}

  #feedName(tenant: string): string {
    return this.isOfAll ? ofAll : tenant;
  }

  /** The number of entries. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the principal of the credentials, or undefined if it must be read. */
  get(tenant: string, credentials: string): Principal | undefined | Promise<Principal | undefined> {
    const key = `${tenant} ${credentials}`;
    const entry = this.#entries.get(key);
    const name = this.#feedName(tenant);
    const feed = this.#feeds.get(name);
    if (entry === undefined || feed === undefined) return undefined;
    const now = this.now();
    if (now - feed.provenAt >= provenFor) this.#poll(name, feed, now);
    if (this.#isStale(entry, feed, now)) {
      this.#delete(key);
      return undefined;
    }
    const trusted = this.isOfAll ? trustedForOfAll : trustedFor;
    if (now - feed.provenAt < trusted) return entry.principal;
    return feed.polling?.then(() => {
      const now = this.now();
      return now - feed.provenAt < trusted && !this.#isStale(entry, feed, now) ? entry.principal : undefined;
    });
  }

  /** Keeps a principal that was read by a request that was sent at the time readAt. */
  put(tenant: string, credentials: string, principal: Principal, readAt: number): void {
    const name = this.#feedName(tenant);
    if (!this.#feeds.has(name)) {
      this.#feeds.set(name, new Feed());
      removeFirst(this.#feeds, maxFeeds);
    }
    const key = `${tenant} ${credentials}`;
    this.#delete(key); // so that the entry becomes the last one
    const texts = textsOf(principal.session);
    this.#entries.set(key, { principal, texts, readAt, slots: [slotOf(principal.id), slotOf(tenant)] });
    this.#texts += texts;
    for (const first of this.#entries.keys()) {
      if (this.#entries.size <= this.maxEntries && this.#texts <= this.maxEntries * textsPerEntry) break;
      this.#delete(first);
    }
  }

  /** Removes the principal of the credentials. */
  remove(tenant: string, credentials: string): void {
    this.#delete(`${tenant} ${credentials}`);
  }

  #delete(key: string): void {
    this.#texts -= this.#entries.get(key)?.texts ?? 0;
    this.#entries.delete(key);
  }

  /** Reports whether an entry must be read again, even if the feed has no further change. */
  #isStale({ principal, readAt, slots }: Entry, feed: Feed, now: number): boolean {
    return now - readAt >= rereadAfter || readAt < feed.changedAt(slots) + nodeLag || Date.now() >= principal.validUntil;
  }

  /** Starts to read the feed, unless it is being read, or has failed a moment ago. */
  #poll(tenant: string, feed: Feed, now: number): void {
    if (feed.polling !== undefined || now < feed.pausedUntil) return;
    feed.polling = this.#read(tenant, feed)
      .then(() => {
        feed.failures = 0;
      }, (error: unknown) => {
        const least = error instanceof ProblemError ? (error.retryAfter ?? 0) * 1000 : 0;
        feed.pausedUntil = this.now() + (isTemporary(error) ? backoff(feed.failures++, least, shortestPause, longestPause) : longestPause);
        if (error instanceof ProblemError && error.status === 410) {
          feed.cursor = undefined;
          feed.pausedUntil = -Infinity;
        }
        this.onError(error, tenant);
      })
      .finally(() => {
        feed.polling = undefined;
      });
  }

  async #read(tenant: string, feed: Feed): Promise<void> {
    if (this.now() - feed.provenAt > rereadAfter) feed.cursor = undefined; // no entry is that old
    const end = this.now() + longestPoll;
    for (let sent = this.now(); sent < end; sent = this.now()) {
      const { items, nextCursor, upToDate } = await this.readChanges(tenant, feed.cursor);
      const received = this.now();
      if (feed.cursor === undefined) feed.all = received; // changes before the cursor are unknown
      for (const change of items) {
        const affected = affectedBy(change);
        if (affected === "all") feed.all = received;
        else if (affected !== "none") feed.slots[slotOf(affected.name)] = received;
      }
      feed.cursor = nextCursor;
      if (upToDate) {
        feed.provenAt = sent;
        return;
      }
    }
  }
}

/** Types of events that take nothing away from a principal. */
const harmless = new Set([
  "user.created", "user.invited", "user.invitation_withdrawn", "user.email_change_requested", "role.created", "group.created", "session.started",
  "session.sign_in_failed", "user.password_reset_requested", "user.recovery_codes_made", "user.recovery_code_used", "connection.created",
  "connection.tested",
  "connection.groups_skipped",
  "directory.created", "directory.updated", "directory.deleted", "directory.token_created", "directory.token_revoked",
  "token.created", "service_account.created", "tenant.logo_changed", "tenant.logo_removed", "request.refused",
  "mail.undeliverable", "users.exported", "role.users_exported", "events.exported", "job.started", "job.canceled", "job.ended",
]);

/** Returns whose permissions or sessions a change can affect: a principal or a tenant. An unknown change affects its tenant. */
function affectedBy({ type, data: { subject, tenant } }: Schemas["Change"]): "none" | "all" | { name: string } {
  if (harmless.has(type) || subject.type === "webhook") return "none";
  const isPrincipal = subject.type === "user" || subject.type === "service_account";
  if (isPrincipal && typeof subject.id === "string") return { name: subject.id };
  return tenant ? { name: tenant } : "all";
}

/** Removes the entries that were added first, until the map has the maximum size. */
function removeFirst(map: Map<string, unknown>, maximum: number): void {
  for (const key of map.keys()) {
    if (map.size <= maximum) return;
    map.delete(key);
  }
}
