/**
 * A JWT in the compact serialisation (RFC 7515 §7.1) as it says of itself, before anything is believed. Only what is written in the
 * one canonical way is read: three parts of base64url without padding or stray bits, so that no token has a second spelling, and
 * JSON objects without a name given twice (RFC 7519 §4). Nothing is verified here.
 */
import { parseJson } from '../../http/syntax/json.ts';

type Members = Readonly<Record<string, unknown>>;

export type ReadJwt = {
  readonly header: Members;
  readonly claims: Members;
  /** The JSON texts of the two. */
  readonly headerText: string;
  readonly claimsText: string;
};

/** Claims of external issuers may be nested; ours never are. */
const limits = { depthMax: 16, keysMax: 1000 };
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined for what is no such token. The caller bounds its length before. */
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

/** Whether both texts are what JSON.stringify makes of their values, as those of tokens that we sign are. */
export function isWrittenPlainly(read: ReadJwt): boolean {
  return JSON.stringify(read.header) === read.headerText && JSON.stringify(read.claims) === read.claimsText;
}

/** Undefined for anything but the one spelling of at least one octet. */
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
    // Not UTF-8, so not JSON.
    return undefined;
  }
}

function members(json: string): Members | undefined {
  const parsed = parseJson(json, limits);
  if (!parsed.ok) return undefined;
  const { value } = parsed;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}
