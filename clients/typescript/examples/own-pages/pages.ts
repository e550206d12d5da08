// The pages. They need no style for this example.

const escape = (text: string) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const page = (title: string, body: string) => `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escape(title)}</title><h1>${escape(title)}</h1>${body}`;
const field = (name: string, type = "text") => `<p><label>${name} <input name="${name}" type="${type}" required></label>`;
const hidden = (name: string, value = "") => `<input type="hidden" name="${name}" value="${escape(value)}">`;
/** A form that is sent to the address of the page, or to another one. */
const form = (button: string, fields: string, action = "") =>
  `<form method="post"${action ? ` action="${escape(action)}"` : ""}>${fields}<button>${escape(button)}</button></form>`;

export const notice = (text: string) => page("Shop", `<p>${escape(text)}</p>`);

/** The key tells whether the same form is sent twice. */
export const signUp = (key: string) => page("Sign up", form("Sign up", field("company") + field("name") + field("email", "email") + hidden("once", key), "/sign-up"));

/** The script moves the token from the address of the page into the form. Mail scanners open links, but press no button. */
export const newPassword = (title: string) => page(title, `${form("Save", field("password", "password") + hidden("token"))}
<script>
  document.querySelector("[name=token]").value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
</script>`);

export const forgotten = () => page("Forgotten password", form("Send me a link", field("email", "email")));

export const signIn = (tenant: string, connections: { id: string; name: string }[]) => page("Sign in", [
  form("Sign in", field("email", "email") + field("password", "password")),
  ...connections.map(({ id, name }) => form(`Sign in with ${name}`, "", `/${tenant}/sign-in-with/${id}`)),
  `<p><a href="/${escape(tenant)}/forgotten">Forgotten password</a>`,
].join(""));

export const secondFactor = (tenant: string, challenge: string) =>
  page("Second factor", form("Sign in", field("code") + hidden("challenge", challenge), `/${tenant}/second-factor`));

export const home = (tenant: string, name: string, [approves, invites]: (boolean | undefined)[]) => page(`Hello ${name}`, [
  approves ? form("Approve the invoice 7", "", `/${tenant}/invoices/7/approve`) : "",
  invites ? form("Invite", field("name") + field("email", "email"), `/${tenant}/colleagues`) : "",
  form("Sign out", "", `/${tenant}/sign-out`),
].join(""));
