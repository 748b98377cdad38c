/**
 * Converts the header section of an HTTP/2 request to the HTTP/1.1 form (RFC 9113 §8.3.1): `Host` from `:authority`,
 * first; one Cookie from its crumbs (RFC 9113 §8.2.3). Order and values stay as received. A `host` that differs from
 * `:authority` stays too, and the kernel refuses two Hosts.
 */

export type Head = {
  readonly method: string;
  /** `:path`; for a plain CONNECT, which has none, `:authority`. */
  readonly target: string;
  readonly scheme: string;
  readonly authority: string | undefined;
  readonly protocol: string | undefined;
  /** Name, value ...; names in lower case. */
  readonly rawFields: readonly string[];
  /** Octets of the same request line and fields in HTTP/1.1, to which the limits of both protocols apply. */
  readonly bytes: number;
  /** A value begins or ends with white space, which makes the request malformed (RFC 9113 §8.2.1). */
  readonly padded: boolean;
};

/** `GET`, target, `HTTP/1.1`: two spaces, version, CRLF, and the empty line at the end. */
const lineBytes = 14;
const fieldBytes = 4;

/** @param raw name, value ... from node:http2: pseudo-header fields first */
export function readHead(raw: readonly string[]): Head {
  let method = '';
  let path: string | undefined;
  let scheme = '';
  let authority: string | undefined;
  let protocol: string | undefined;
  let index = 0;
  for (; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (name.charCodeAt(0) !== 0x3a) break;
    const value = raw[index + 1] ?? '';
    if (name === ':method') method = value;
    else if (name === ':path') path = value;
    else if (name === ':scheme') scheme = value;
    else if (name === ':authority') authority = value;
    else if (name === ':protocol') protocol = value;
  }
  const target = path ?? authority ?? '';
  const rawFields: string[] = authority === undefined ? [] : ['host', authority];
  let bytes =
    method.length + target.length + lineBytes + (authority === undefined ? 0 : authority.length + 8);
  let cookieAt = -1;
  let padded = false;
  for (; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    bytes += name.length + value.length + fieldBytes;
    padded ||= isSpace(value.charCodeAt(0)) || isSpace(value.charCodeAt(value.length - 1));
    if (name === 'cookie' && cookieAt >= 0) rawFields[cookieAt] += `; ${value}`;
    else if (name !== 'host' || authority === undefined || !isSame(value, authority)) {
      if (name === 'cookie') cookieAt = rawFields.length + 1;
      rawFields.push(name, value);
    }
  }
  return { method, target, scheme, authority, protocol, rawFields, bytes, padded };
}

function isSame(host: string, authority: string): boolean {
  return host === authority || host.toLowerCase() === authority.toLowerCase();
}

/** The code is NaN for an empty value. */
function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
