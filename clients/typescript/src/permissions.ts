/** Permissions has the permissions of a caller, as in the response of GET /auths/session. */
export interface Permissions {
  /** The permissions in the whole tenant. */
  readonly permissions: readonly string[];
  /** The permissions that are limited to some departments. */
  readonly scopedPermissions: readonly { readonly reach: { readonly departments: readonly string[] }; readonly permissions: readonly string[] }[];
}

/** In says where a permission is needed. */
export interface In {
  /** The department of the object of the action. Without it, the permission is needed in the whole tenant. */
  department?: string | null | undefined;
}

const part = String.raw`(\*|[a-z][\w-]{0,63})`;
const form = new RegExp(String.raw`^(?:${part}/)?${part}(?:\.${part})?:${part}$`);

type Parts = readonly [application: string | undefined, resource: string, field: string | undefined, action: string];

function parse(permission: unknown): Parts | null {
  if (typeof permission !== "string" || permission.length > 200) return null;
  const found = form.exec(permission);
  return found && [found[1], found[2] ?? "", found[3], found[4] ?? ""];
}

/**
 * covers reports whether a permission of a role covers a required permission. It follows the table in
 * docs/permissions.md. It returns false if one of them is malformed.
 */
export function covers(held: string, required: string): boolean {
  const h = parse(held), r = parse(required);
  return h !== null && r !== null && includes(h, r);
}

function includes([application, resource, field, action]: Parts, required: Parts): boolean {
  const fits = (held: string | undefined, part: string | undefined) => held === "*" || held === part;
  return (required[0] === undefined ? application === undefined : fits(application, required[0])) &&
    fits(resource, required[1]) && (field === undefined || fits(field, required[2])) && fits(action, required[3]);
}

/**
 * can reports whether the caller has the permission, in a department or in the whole tenant. It needs no
 * request, and never allows what Rolecall refuses. It can refuse what Rolecall allows in two cases:
 * it compares the names of departments exactly, and it does not consider the departments of Rolecall's own
 * permissions, such as users:read. Check these with POST /auths/checks.
 */
export function can(caller: Permissions, permission: string, where: In = {}): boolean {
  return matcher(caller)(permission, where);
}

/** Matcher is can for one caller. */
export type Matcher = (permission: string, where?: In) => boolean;

/** matcher parses the permissions of a caller once, for many checks. */
export function matcher(caller: Permissions): Matcher {
  const everywhere = parsed(caller?.permissions);
  const scoped = listOf(caller?.scopedPermissions).map((s) => ({ held: parsed(s?.permissions), departments: listOf(s?.reach?.departments) }));
  return (permission, { department } = {}) => {
    const required = parse(permission);
    if (required === null) return false;
    if (everywhere.some((held) => includes(held, required))) return true;
    if (!department || required[0] === undefined) return false;
    return scoped.some(({ held, departments }) => departments.includes(department) && held.some((h) => includes(h, required)));
  };
}

/** parsed returns the well-formed ones of the permissions. */
function parsed(permissions: readonly string[] | undefined): Parts[] {
  return listOf(permissions).map(parse).filter((held) => held !== null);
}

/** A malformed list must not turn a check into an exception. */
function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  return Array.isArray(value) ? value : [];
}
