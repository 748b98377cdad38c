/** As much of a browser as a sign-in needs: cookies by origin, and redirects, followed one at a time or to the end. */

export type Page = {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  readonly json: () => Record<string, unknown>;
};

const redirectsMax = 20;

export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** One request; a redirect is an answer like any other. */
  async get(url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Page> {
    const { origin } = new URL(url);
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { ...(cookie === '' ? {} : { Cookie: cookie }), ...headers },
    });
    for (const field of response.headers.getSetCookie()) keep(jar, field);
    return pageOf(url, response);
  }

  /** Sends a form as a page of another site does: without cookies, which are all `SameSite=Lax`. */
  async post(url: string, form: URLSearchParams): Promise<Page> {
    const response = await fetch(url, { method: 'POST', redirect: 'manual', body: form });
    return pageOf(url, response);
  }

  /** Follows redirects up to the URL that `until` names, which is not asked for, or to the last answer. */
  async follow(
    url: string,
    until: (url: string) => boolean = () => false,
  ): Promise<Page & { readonly next: string | undefined }> {
    let at = url;
    for (let redirects = 0; redirects < redirectsMax; redirects += 1) {
      const page = await this.get(at);
      const location = page.headers.get('location');
      if (location === null) return { ...page, next: undefined };
      at = new URL(location, at).href;
      if (until(at)) return { ...page, next: at };
    }
    throw new Error(`more than ${redirectsMax} redirects from ${url}`);
  }

  cookie(origin: string, name: string): string | undefined {
    return this.#cookies.get(origin)?.get(name);
  }

  setCookie(origin: string, name: string, value: string): void {
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar.set(name, value));
  }
}

async function pageOf(url: string, response: Response): Promise<Page> {
  const { status, headers } = response;
  const body = await response.text();
  return { url, status, headers, body, json: () => JSON.parse(body) as Record<string, unknown> };
}

function keep(jar: Map<string, string>, field: string): void {
  const [pair = '', ...attributes] = field.split(';').map((part) => part.trim());
  const equals = pair.indexOf('=');
  const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)];
  const over = attributes.some((attribute) => /^max-age=0$|^expires=Thu, 01 Jan 1970/i.test(attribute));
  if (over) jar.delete(name);
  else jar.set(name, value);
}
