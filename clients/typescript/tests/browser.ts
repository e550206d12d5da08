// A browser without scripts, which accepts the certificate of the tests.

import { request as insecureRequest, type IncomingHttpHeaders } from "node:http";
import { request as secureRequest } from "node:https";

/** A page, after redirects. */
export interface Page {
  url: URL;
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Browser visits pages and sends forms, and keeps the cookies of each origin. */
export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>();
  /** The header Sec-Fetch-Site of its requests. */
  site: "cross-site" | undefined;

  /** hosts has the address of an origin that is not in the DNS. */
  constructor(private readonly ca: Buffer, private readonly hosts: Record<string, string> = {}) {}

  /** Opens a page, or sends the fields of a form to it. It follows redirects, but not to an address that begins with end. */
  async visit(address: string | URL, fields?: Record<string, string>, end?: string): Promise<Page> {
    let url = new URL(address);
    let body = fields === undefined ? undefined : new URLSearchParams(fields).toString();
    for (let redirects = 0; redirects < 20; redirects++) {
      if (end !== undefined && url.href.startsWith(end)) return { url, status: 0, headers: {}, text: "" };
      const page = await this.#send(url, body);
      if (page.status < 300 || page.status >= 400 || page.headers.location === undefined) return page;
      url = new URL(page.headers.location, url);
      body = undefined;
    }
    throw new Error(`too many redirects at ${url.href}`);
  }

  /** Sends the form with the button. Fields that are not given have the values of the page. */
  submit(page: Page, button: string, fields: Record<string, string> = {}, end?: string): Promise<Page> {
    for (const [form, attributes = "", content = ""] of page.text.matchAll(/<form([^>]*)>(.*?)<\/form>/gs)) {
      if (!form.includes(button)) continue;
      const values: Record<string, string> = {};
      for (const [input] of content.matchAll(/<input[^>]*>/g)) {
        const name = /name="([^"]*)"/.exec(input)?.[1];
        if (name) values[name] = /value="([^"]*)"/.exec(input)?.[1] ?? "";
      }
      return this.visit(new URL(/action="([^"]*)"/.exec(attributes)?.[1] ?? page.url.pathname, page.url), { ...values, ...fields }, end);
    }
    throw new Error(`no form with ${button}: ${page.status} ${page.text}`);
  }

  /** Returns a cookie of an origin. */
  cookie(origin: string, name: string): string | undefined {
    return this.#cookies.get(origin)?.get(name);
  }

  #send(url: URL, body: string | undefined): Promise<Page> {
    const target = new URL(url.pathname + url.search, this.hosts[url.origin] ?? url.origin);
    const jar = this.#cookies.get(url.origin) ?? new Map<string, string>();
    this.#cookies.set(url.origin, jar);
    const headers: Record<string, string> = { cookie: Array.from(jar, ([name, value]) => `${name}=${value}`).join("; ") };
    if (this.site !== undefined) headers["sec-fetch-site"] = this.site;
    if (body !== undefined) headers["content-type"] = "application/x-www-form-urlencoded";
    return new Promise((resolve, reject) => {
      const request = target.protocol === "https:" ? secureRequest : insecureRequest;
      request(target, { method: body === undefined ? "GET" : "POST", headers, ca: this.ca, agent: false }, (response) => {
        for (const line of response.headers["set-cookie"] ?? []) {
          const [pair = ""] = line.split(";");
          const name = pair.split("=", 1)[0]!;
          if (/max-age=0|expires=thu, 01 jan 1970/i.test(line)) jar.delete(name);
          else jar.set(name, pair.slice(name.length + 1));
        }
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part)).on("error", reject);
        response.on("end", () => resolve({ url, status: response.statusCode!, headers: response.headers, text }));
      }).on("error", reject).end(body);
    });
  }
}
