// Starts oidc-provider with the certificate, its key and the start of all redirect URIs, of the arguments, and prints its issuer.
// Its page accepts every name and password. The name is the email address.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import Provider from "oidc-provider";

const [cert, key, redirects] = process.argv.slice(2);
const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }).listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `https://localhost:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: "rolecall", client_secret: "the secret of rolecall", redirect_uris: [`${redirects}id`] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: id, email_verified: true, name: "Olga Owner" }) }),
  pkce: { required: () => true },
});
provider.Client.prototype.redirectUriAllowed = (uri) => uri.startsWith(redirects);
server.on("request", provider.callback());
console.log(`issuer ${issuer}`);
