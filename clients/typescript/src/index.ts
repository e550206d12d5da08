/**
 * Client for Rolecall: users, roles and sessions of multi-tenant applications.
 *
 * @packageDocumentation
 */
export { Rolecall, type Call, type ItemOf, type ListPath, type RolecallOptions, type Schemas } from "./client.js";
export { type ChangeType, follow, type FollowOptions } from "./changes.js";
export { Guard, Principal, Refusal, type GuardOptions, type MemoryOptions, principalOf, type RequestLike } from "./guard.js";
export type { components, operations, paths } from "./openapi.js";
export { can, covers, type In, type Permissions } from "./permissions.js";
export { type Fault, LostConnectionError, ProblemError } from "./problem.js";
export type { RetryOptions } from "./retry.js";
export { type Change, DeliveryError, type HeaderSource, WebhookVerifier } from "./webhooks.js";
