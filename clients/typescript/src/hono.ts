/**
 * Middleware for Hono.
 *
 *     app.get("/:tenant/invoices", requires(guard, "shop/invoices:read"), (context) => {
 *       return context.json(principalOf(context).id);
 *     });
 *
 * @packageDocumentation
 */
import { type Guard, remember, type RequestLike } from "./guard.js";
import type { In } from "./permissions.js";

export { principalOf } from "./guard.js";

/**
 * requires returns a middleware that lets a request pass if its principal has the permission. Without a
 * permission, each principal may pass. The function where names the department of the request. Otherwise, the
 * middleware rejects with a Refusal, which Hono answers.
 */
export function requires<C extends RequestLike>(guard: Guard<C>, permission?: string, where?: (context: C) => In): (context: C, next: () => Promise<void>) => Promise<void> {
  return async (context, next) => {
    remember(context, await guard.authorize(context, permission, where?.(context)));
    await next();
  };
}
