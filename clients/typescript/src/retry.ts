import { isProgramError, LostConnectionError, retryAfter } from "./problem.js";

/** RetryOptions limit the repetitions of a request. */
export interface RetryOptions {
  /** The maximum number of repetitions. Default: 4. */
  limit?: number;
  /** The pause before the first repetition in milliseconds. It doubles with each one. Default: 500. */
  pause?: number;
  /** The longest pause in milliseconds. If Retry-After is longer, the request is not repeated. Default: 30,000. */
  longestPause?: number;
}

/** The maximum length of a JSON response in bytes. Longer ones are not responses of Rolecall. */
const longestAnswer = 16 << 20;

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"]);

/** Caches of frameworks, such as that of Next.js, must not answer for Rolecall. Old versions of workerd refuse the option. */
const uncached = ("cache" in Request.prototype ? { cache: "no-store" } : {}) as RequestInit; // types of Node.js lack it

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
 * during the response is noticed here. The timeout is for the response, or for each part of another body.
 */
async function once(fetch: (request: Request) => Promise<Response>, request: Request, timeout: number): Promise<Response | LostConnectionError> {
  const silence = new AbortController();
  // AbortSignal.any would do this, but browsers of 2023 do not have it.
  if (request.signal.aborted) silence.abort(request.signal.reason);
  else request.signal.addEventListener("abort", () => silence.abort(request.signal.reason), { once: true });
  const lost = (cause: unknown) => {
    request.signal.throwIfAborted();
    if (isProgramError(cause)) throw cause;
    return new LostConnectionError(`${request.method} ${new URL(request.url).pathname} got no complete response`, { cause });
  };
  const inTime = async <T>(work: () => Promise<T>): Promise<T> => {
    const timer = timeout === Infinity ? undefined : setTimeout(() => silence.abort(new DOMException(`nothing was received for ${timeout} ms`, "TimeoutError")), timeout);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
    }
  };
  try {
    return await inTime(async () => {
      const response = await fetch(new Request(request.clone(), { signal: silence.signal, ...uncached }));
      if (response.body === null) return response;
      if (/^application\/(problem\+)?json\b/.test(response.headers.get("content-type") ?? "")) return new Response(await limited(response.body), response);
      return new Response(streamed(response.body, (read) => inTime(read).catch((cause: unknown) => Promise.reject(lost(cause)))), response);
    });
  } catch (cause) {
    return lost(cause);
  }
}

/** Reads the body. It rejects if the body is longer than longestAnswer. */
async function limited(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<Blob> {
  const reader = body.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let length = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    length += value.byteLength;
    if (length > longestAnswer) {
      await reader.cancel();
      throw new Error(`the response has more than ${longestAnswer >> 20} MiB`);
    }
    parts.push(value);
  }
}

/** Returns the body, whose parts the function receive reads. */
function streamed(body: ReadableStream<Uint8Array>, receive: <T>(read: () => Promise<T>) => Promise<T>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await receive(() => reader.read());
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 }); // a part is received when it is needed, so that a slow reader is not a lost connection
}

/** Returns the pause in milliseconds after a number of earlier failures. A random part of it is added. */
export function backoff(failures: number, least: number, first: number, longest: number): number {
  const pause = Math.max(least, Math.min(longest, first * 2 ** Math.min(failures, 16)));
  return pause * (1 + Math.random() / 2);
}

/** Waits for a time in milliseconds. It rejects with the reason of the signal if that is aborted first. */
export function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
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
