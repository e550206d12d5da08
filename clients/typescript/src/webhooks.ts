import type { components } from "./openapi.js";

/** Change is an item of a change feed and the body of a webhook: an event as a CloudEvent 1.0. */
export type Change = components["schemas"]["Change"];

/** HeaderSource has the headers of a request: Headers, or an object with lower-case names as in Node.js. */
export type HeaderSource = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** DeliveryError means that the webhook has not sent the request, or not at this time. Answer it with 401. */
export class DeliveryError extends Error {
  override readonly name = "DeliveryError";
}

/** CryptoKey, which only the types of browsers name. */
type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** The maximum difference between the time of a delivery and the clock, in milliseconds. */
const tolerance = 5 * 60_000;

/** Returns a header, or an empty text if the request does not have it. */
export function headerOf(headers: HeaderSource, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return typeof value === "string" ? value : (value?.join(", ") ?? "");
}

/** WebhookVerifier verifies the deliveries of a webhook by its secret (Standard Webhooks 1.0). */
export class WebhookVerifier {
  readonly #keys: Promise<Key[]>;
  readonly #now: () => number;

  /**
   * The secret is whsec_ and base64. To accept an old and a new secret for a while, pass both. The function
   * now returns the time in milliseconds, for tests.
   */
  constructor(secret: string | readonly string[], now: () => number = Date.now) {
    const secrets = typeof secret === "string" ? [secret] : secret;
    const bytes = secrets.map((text) => decode(text.replace(/^whsec_/, "")));
    if (bytes.length === 0 || bytes.some((key) => key === null || key.length === 0)) {
      throw new TypeError("the secret of a webhook must be whsec_ and base64"); // without the secret
    }
    this.#keys = Promise.all(bytes.map((key) => crypto.subtle.importKey("raw", key!, { name: "HMAC", hash: "SHA-256" }, false, ["verify"])));
    this.#now = now;
  }

  /**
   * Verifies that the webhook has sent the headers and the body in the last five minutes, and returns the
   * item. The body must be what was received, before it is decoded. A delivery can arrive more than once, and
   * has the same webhook-id then. Otherwise, it rejects with a DeliveryError.
   */
  async verify(headers: HeaderSource, body: string | Uint8Array | ArrayBuffer): Promise<Change> {
    const id = headerOf(headers, "webhook-id"), timestamp = headerOf(headers, "webhook-timestamp"), signatures = headerOf(headers, "webhook-signature");
    if (!id || !timestamp || !signatures) throw new DeliveryError("the delivery lacks webhook-id, webhook-timestamp or webhook-signature");
    if (!/^\d{1,15}$/.test(timestamp)) throw new DeliveryError("webhook-timestamp is not a number of seconds");
    if (Math.abs(this.#now() - Number(timestamp) * 1000) > tolerance) {
      throw new DeliveryError("the delivery was sent more than five minutes ago, or in the future");
    }
    const content = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
    const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
    const signed = new Uint8Array(prefix.length + content.length);
    signed.set(prefix);
    signed.set(content, prefix.length);
    let isValid = false;
    for (const key of await this.#keys) {
      for (const signature of signatures.split(" ")) {
        const bytes = signature.startsWith("v1,") ? decode(signature.slice(3)) : null;
        // verify compares in constant time.
        if (bytes !== null && (await crypto.subtle.verify("HMAC", key, bytes, signed))) isValid = true;
      }
    }
    if (!isValid) throw new DeliveryError("no signature of the delivery matches");
    return JSON.parse(new TextDecoder().decode(content)) as Change;
  }
}

/** Returns the bytes of a base64 text, or null. */
function decode(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
