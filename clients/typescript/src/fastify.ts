/**
 * Middleware for Fastify.
 *
 *     app.get("/:tenant/invoices", { preHandler: requires(guard, "shop/invoices:read") }, async (request) => {
 *       return principalOf(request).id;
 *     });
 *
 * @packageDocumentation
 */
import { type Guard, remember, type RequestLike } from "./guard.js";
import type { In } from "./permissions.js";

export { principalOf } from "./guard.js";

/**
 * requires returns a hook that lets a request pass if its principal has the permission. Without a permission,
 * each principal may pass. The function where names the department of the request. Otherwise, the hook rejects
 * with a Refusal, whose status Fastify answers.
 */
export function requires<R extends RequestLike>(guard: Guard<R>, permission?: string, where?: (request: R) => In): (request: R) => Promise<void> {
  return async (request) => {
    remember(request, await guard.authorize(request, permission, where?.(request)));
  };
}
