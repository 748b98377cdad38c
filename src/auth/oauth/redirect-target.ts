/**
 * Where a browser may be led after a sign-in: a path of our own origin, or a page of an origin that may send credentials (§5.5). Any
 * other would make this server lend its name to somebody else's page (RFC 9700 §4.11). What comes out is written anew by the parser of
 * URLs, so it has only the characters of a URL and means the same to every browser.
 */

const charactersMax = 2000;
/** Stands for our own, whatever it is called. */
const ownOrigin = 'http://own.invalid';

/**
 * @param origins serialized; those that may send credentials
 * @returns the value of Location; undefined: not allowed
 */
export function redirectTarget(text: string, origins: ReadonlySet<string>): string | undefined {
  if (text.length > charactersMax || forbidden.test(text)) return undefined;
  return text.startsWith('/') ? ownPath(text) : foreignPage(text, origins);
}

/** Browsers take `\` for `/`, and leave out tabs and line breaks: `/\evil.example` and `/<tab>/evil.example` name a host. */
const forbidden = /[\p{Cc}\s\\]/u;

function ownPath(text: string): string | undefined {
  if (!URL.canParse(text, ownOrigin)) return undefined;
  const { origin, pathname, search, hash } = new URL(text, ownOrigin);
  // Without its dot segments `/.//evil.example` is `//evil.example`.
  if (origin !== ownOrigin || pathname.startsWith('//')) return undefined;
  return `${pathname}${search}${hash}`;
}

function foreignPage(text: string, origins: ReadonlySet<string>): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isPage = url.protocol === 'https:' || url.protocol === 'http:';
  if (!isPage || url.username !== '' || url.password !== '' || !origins.has(url.origin)) return undefined;
  return url.href;
}
