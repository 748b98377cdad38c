/**
 * Parses a JWT in the compact serialisation (RFC 7515 §7.1) without verifying it. Only the canonical form is accepted: three parts of
 * base64url without padding or stray bits, so that no token has a second spelling, and JSON objects without duplicate names (RFC 7519
 * §4).
 */
import { parseJson } from '../../http/syntax/json.ts';

type Members = Readonly<Record<string, unknown>>;

export type ReadJwt = {
  readonly header: Members;
  readonly claims: Members;
  readonly headerText: string;
  readonly claimsText: string;
};

/** Claims of trusted issuers may be nested; Comity's are not. */
const limits = { depthMax: 16, keysMax: 1000 };
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns undefined for any other text. The caller bounds its length. */
export function readJwt(token: string): ReadJwt | undefined {
  const [first, second, third, more] = token.split('.', 4);
  if (first === undefined || second === undefined || third === undefined || more !== undefined)
    return undefined;
  if (octets(third) === undefined) return undefined;
  const headerText = text(first);
  const claimsText = text(second);
  if (headerText === undefined || claimsText === undefined) return undefined;
  const header = members(headerText);
  const claims = members(claimsText);
  return header === undefined || claims === undefined
    ? undefined
    : { header, claims, headerText, claimsText };
}

/** True if JSON.stringify would produce both texts, as it does for tokens that Comity signs. */
export function isWrittenPlainly(read: ReadJwt): boolean {
  return JSON.stringify(read.header) === read.headerText && JSON.stringify(read.claims) === read.claimsText;
}

function octets(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url');
  return bytes.length > 0 && bytes.toString('base64url') === part ? bytes : undefined;
}

function text(part: string): string | undefined {
  const bytes = octets(part);
  if (bytes === undefined) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function members(json: string): Members | undefined {
  const parsed = parseJson(json, limits);
  if (!parsed.ok) return undefined;
  const { value } = parsed;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}
