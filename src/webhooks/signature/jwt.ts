/**
 * Verifies messages that carry a JSON Web Token (RFC 7519, RFC 8725): the signature (RFC 7515 §5.2) first, by the one algorithm of the rule,
 * then the claims. Nothing in the token names the key or where it is: `jku`, `jwk` and `x5u` of its header have no effect, and `kid` only
 * selects among trusted keys.
 */
import type { MacPrimitives, PreparedKeys } from './mac-keys.ts';
import { decodeBase64Url, octetsOf, sameOctets } from './octets.ts';
import {
  type JwtRule,
  type RefusalReason,
  type RuleVerdict,
  refused,
  refuseField,
  urlSubject,
} from './signature-rule.ts';
import { decodeDigest, placeReader, type SignedMessage, signedUrls } from './signed-content.ts';
import type { VerifyByKeys } from './trusted-keys.ts';

declare const TextDecoder: {
  new (label: 'utf-8', options: { readonly fatal: true }): { decode(octets: Uint8Array): string };
};

/** Shared: it keeps no state between tokens. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Tolerated difference of the clocks for `exp` and `nbf`, as for trusted issuers. */
export const jwtClockSkewSeconds = 30;

const keyIdCharactersMax = 256;

type Claims = Readonly<Record<string, unknown>>;

export type JwtVerification<Key> = {
  readonly rule: JwtRule;
  readonly message: SignedMessage;
  readonly keys: Extract<PreparedKeys<Key>, { readonly kind: 'jwt' }>;
  readonly primitives: MacPrimitives<Key>;
  readonly byKeys: VerifyByKeys | undefined;
  readonly toleranceSeconds: number;
  readonly nowMs: number;
};

/** @throws TypeError if the URL is the subject and the program did not give it */
export async function verifyJwt<Key>(verification: JwtVerification<Key>): Promise<RuleVerdict> {
  const { rule, message } = verification;
  if (rule.subject === urlSubject && message.url === undefined)
    throw new TypeError('this sender signs the URL of its request: pass url');
  const token = readToken(rule, message);
  if (typeof token === 'string') return refused(token);
  const secret = await findKey(verification, token);
  if (secret === undefined) return refused('no-match');
  const { claims } = token;
  if (!(await coversBody(verification, claims))) return refused('no-match');
  const reason = isForUs(rule, claims, message) ? faultOfTime(verification, claims) : 'unexpected';
  if (reason !== undefined) return refused(reason);
  return { ok: true, timestamp: numericDate(claims.iat) ?? null, id: null, secret };
}

type Token = {
  readonly algorithm: unknown;
  readonly keyId: string | undefined;
  readonly claims: Claims;
  /** The octets that are signed: header and payload as they are written (RFC 7515 §5.2). */
  readonly content: Uint8Array;
  readonly signature: Uint8Array;
};

function readToken(rule: JwtRule, message: SignedMessage): Token | 'missing' | 'malformed' {
  const value = placeReader(message)(rule.header);
  const fault = refuseField(value);
  if (fault !== undefined) return fault;
  const { prefix = '' } = rule;
  const text = String(value);
  if (!text.startsWith(prefix)) return 'malformed';
  const parts = text.slice(prefix.length).split('.');
  const [header, claims, signature] = parts.map((part) => decodeBase64Url(part));
  if (parts.length !== 3 || signature === undefined) return 'malformed';
  const parameters = recordOf(header);
  const payload = recordOf(claims);
  if (parameters === undefined || payload === undefined) return 'malformed';
  const { alg, kid, crit } = parameters;
  // No extension is understood (RFC 7515 §4.1.11).
  if (crit !== undefined) return 'malformed';
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > keyIdCharactersMax)) return 'malformed';
  const content = octetsOf(text.slice(prefix.length, text.lastIndexOf('.')));
  return { algorithm: alg, keyId: kid, claims: payload, content, signature };
}

function recordOf(octets: Uint8Array | undefined): Claims | undefined {
  if (octets === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(utf8.decode(octets));
    const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isRecord ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the index of the secret that made the signature; null: a public key did; undefined: none. */
async function findKey<Key>(
  { rule, keys, primitives, byKeys }: JwtVerification<Key>,
  { algorithm, keyId, content, signature }: Token,
): Promise<number | null | undefined> {
  if (algorithm !== rule.algorithm) return undefined;
  if (rule.algorithm !== 'HS256')
    return (await byKeys?.({ signatures: [signature], content, keyId })) === true ? null : undefined;
  for (const [at, key] of keys.keys.entries()) {
    if (sameOctets(await primitives.mac(key, 'sha256', [content]), signature)) return at;
  }
  return undefined;
}

async function coversBody<Key>(
  { rule: { contentDigest }, message, primitives }: JwtVerification<Key>,
  claims: Claims,
): Promise<boolean> {
  if (contentDigest === undefined) return true;
  const written = claims[contentDigest.claim];
  const signed = typeof written === 'string' ? decodeDigest(written, contentDigest.encoding) : undefined;
  return signed !== undefined && sameOctets(await primitives.sha256(message.body), signed);
}

function isForUs(
  { issuer, audience, subject, email }: JwtRule,
  claims: Claims,
  { url }: SignedMessage,
): boolean {
  if (issuer !== undefined && ![issuer].flat().some((name) => name === claims.iss)) return false;
  if (audience !== undefined) {
    const named = [claims.aud].flat();
    if (![audience].flat().some((name) => named.includes(name))) return false;
  }
  if (subject !== undefined) {
    const accepted = subject === urlSubject ? signedUrls(url ?? '') : [subject];
    if (!accepted.some((each) => each === claims.sub)) return false;
  }
  return email === undefined || (claims.email === email && claims.email_verified === true);
}

/** RFC 7519 §4.1.4 to §4.1.6. */
function faultOfTime<Key>(
  { toleranceSeconds, nowMs }: JwtVerification<Key>,
  { exp, nbf, iat }: Claims,
): RefusalReason | undefined {
  const now = Math.floor(nowMs / 1000);
  const [expires, begins, issued] = [exp, nbf, iat].map(numericDate);
  const isIll = [exp, nbf, iat].some((claim) => claim !== undefined && numericDate(claim) === undefined);
  if (isIll || (toleranceSeconds === 0 ? expires : issued) === undefined) return 'malformed';
  if (expires !== undefined && now >= expires + jwtClockSkewSeconds) return 'stale';
  if (begins !== undefined && now < begins - jwtClockSkewSeconds) return 'ahead';
  if (toleranceSeconds === 0 || issued === undefined) return undefined;
  if (now - issued > toleranceSeconds) return 'stale';
  return issued - now > toleranceSeconds ? 'ahead' : undefined;
}

function numericDate(claim: unknown): number | undefined {
  return typeof claim === 'number' && Number.isFinite(claim) ? claim : undefined;
}
