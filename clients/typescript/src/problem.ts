import type { components } from "./openapi.js";

/** Fault is one error in a request. One of pointer, header and parameter locates it. */
export type Fault = components["schemas"]["Fault"];

type ProblemBody = components["schemas"]["Problem"];

/**
 * ProblemError is an error response of Rolecall (RFC 9457). To distinguish problems in a program, compare
 * code. If a proxy sent the response in another format, code is "unknown".
 */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  /** The status of the response. */
  readonly status: number;
  /** The stable code, such as validation or second-factor-required. */
  readonly code: string;
  /** The explanation for people. */
  readonly detail: string;
  /** The id of the request. Empty if the response has none. */
  readonly requestId: string;
  /** The errors of single members, headers and parameters of the request. */
  readonly errors: readonly Fault[];
  /** The whole body. With the code second-factor-required, it has challenge, methods and publicKey. */
  readonly body: Partial<ProblemBody>;
  /** The response. Its body is already read. */
  readonly response: Response;
  /** Seconds to wait before you repeat the request. Undefined if the response does not say it. */
  readonly retryAfter: number | undefined;

  constructor(response: Response, body: Partial<ProblemBody>) {
    const code = body.code ?? "unknown";
    const detail = body.detail ?? "The response is not from Rolecall.";
    const errors = body.errors ?? [];
    const faults = errors.map((fault) => `; ${fault.pointer ?? fault.header ?? fault.parameter ?? ""} ${fault.detail}`);
    super(`${response.status} ${code}: ${detail}${faults.join("")}`);
    this.status = response.status;
    this.code = code;
    this.detail = detail;
    this.requestId = body.requestId ?? "";
    this.errors = errors;
    this.body = body;
    this.response = response;
    this.retryAfter = retryAfter(response);
  }

  /** Returns the errors of one member of the request body, for example of "/email". */
  at(pointer: string): readonly Fault[] {
    return this.errors.filter((fault) => fault.pointer === pointer);
  }
}

/** LostConnectionError means that a request got no complete response. The cause has the reason. */
export class LostConnectionError extends Error {
  override readonly name = "LostConnectionError";
}

/**
 * Reports whether an error of a fetch function is a mistake in a program. A lost connection is a TypeError too, with
 * another text on each platform, so that only the texts of mistakes are known.
 */
export function isProgramError(error: unknown): boolean {
  if (error instanceof ReferenceError || error instanceof RangeError) return true;
  return error instanceof TypeError && /is not (a function|a constructor|iterable|an object)|cannot (read|set|destructure|convert)|(is|of) (undefined|null)\b|(invalid|parse) URL/i.test(error.message);
}

/** Returns the error of a response with the status 400 or higher. */
export async function problemOf(response: Response): Promise<ProblemError> {
  const isProblem = response.headers.get("content-type")?.split(";")[0]?.trim() === "application/problem+json";
  const body: unknown = isProblem ? await response.json().catch(() => null) : null;
  return new ProblemError(response, typeof body === "object" && body !== null ? body : {});
}

/** Returns the seconds of the header Retry-After, which has seconds or a date. */
export function retryAfter(response: Response): number | undefined {
  const value = response.headers.get("retry-after");
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}
