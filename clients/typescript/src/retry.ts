import { LostConnectionError, retryAfter } from "./problem.js";

/** RetryOptions limit the repetitions of a request. */
export interface RetryOptions {
  /** The maximum number of repetitions. Default: 4. */
  limit?: number;
  /** The pause before the first repetition in milliseconds. It doubles with each one. Default: 500. */
  pause?: number;
  /** The longest pause in milliseconds. If Retry-After is longer, the request is not repeated. Default: 30,000. */
  longestPause?: number;
}

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * retrying returns a fetch that repeats a request after the status 429 or 503, or a lost connection, and
 * never otherwise. It repeats a request whose effect is unknown only if a repetition has no further effect:
 * a safe method, or an idempotency key. Each attempt has the same headers, and so the same key.
 */
export function retrying(fetch: (request: Request) => Promise<Response>, options: RetryOptions, timeout: number): (request: Request) => Promise<Response> {
  const { limit = 4, pause = 500, longestPause = 30_000 } = options;
  return async (request) => {
    for (let failures = 0; ; failures++) {
      const attempt = await once(fetch, request, timeout);
      const isRepeatable = attempt instanceof LostConnectionError
        ? safeMethods.has(request.method) || request.headers.has("idempotency-key")
        : attempt.status === 429 || attempt.status === 503;
      const least = attempt instanceof Response ? (retryAfter(attempt) ?? 0) * 1000 : 0;
      if (!isRepeatable || failures >= limit || least > longestPause) {
        if (attempt instanceof Response) return attempt;
        throw attempt;
      }
      await rest(backoff(failures, least, pause, longestPause), request.signal);
    }
  };
}

/**
 * once sends the request once, and reads the response if it is JSON, so that a connection that breaks
 * during the response is noticed here.
 */
async function once(fetch: (request: Request) => Promise<Response>, request: Request, timeout: number): Promise<Response | LostConnectionError> {
  const signal = timeout > 0 ? AbortSignal.any([request.signal, AbortSignal.timeout(timeout)]) : request.signal;
  try {
    const response = await fetch(new Request(request.clone(), { signal }));
    if (!/^application\/(problem\+)?json\b/.test(response.headers.get("content-type") ?? "")) return response;
    return new Response(await response.arrayBuffer(), response);
  } catch (cause) {
    request.signal.throwIfAborted();
    return new LostConnectionError(`${request.method} ${new URL(request.url).pathname} got no complete response`, { cause });
  }
}

/** Returns the pause in milliseconds after a number of earlier failures. A random part of it is added. */
export function backoff(failures: number, least: number, first: number, longest: number): number {
  const pause = Math.max(least, Math.min(longest, first * 2 ** Math.min(failures, 16)));
  return pause * (1 + Math.random() / 2);
}

/** Waits for a time in milliseconds. It rejects with the reason of the signal if that is aborted first. */
export function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", stop, { once: true });
  });
}
