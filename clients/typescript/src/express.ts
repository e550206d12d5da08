/**
 * Middleware for Express.
 *
 *     app.get("/:tenant/invoices", requires(guard, "shop/invoices:read"), (request, response) => {
 *       response.json(principalOf(request).id);
 *     });
 *
 * @packageDocumentation
 */
import { type Guard, remember, type RequestLike } from "./guard.js";
import type { In } from "./permissions.js";

export { principalOf } from "./guard.js";

/** Handler is a middleware of Express. */
export type Handler<R> = (request: R, response: unknown, next: (error?: unknown) => void) => void;

/**
 * requires returns a middleware that lets a request pass if its principal has the permission. Without a
 * permission, each principal may pass. The function where names the department of the request. Otherwise, the
 * middleware calls next with a Refusal, whose status Express answers.
 */
export function requires<R extends RequestLike>(guard: Guard<R>, permission?: string, where?: (request: R) => In): Handler<R> {
  return (request, _, next) => {
    guard.authorize(request, permission, where?.(request)).then((principal) => {
      remember(request, principal);
      next();
    }, next);
  };
}
