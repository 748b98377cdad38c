/**
 * Trusted issuers of access tokens (§5.2, RFC 9068), as a configuration declares them. A declaration that would accept tokens with a shared
 * secret, without a signature, or with keys fetched without TLS is refused at the start.
 */
import { scopes as allScopes, type Scope } from '../model/principal.ts';
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';
import { isLoopbackHost } from './oauth-providers.ts';

/** Name of a claim, or the path to a nested one, such as `['realm_access', 'roles']`. */
export type ClaimPath = string | readonly string[];

export type TrustedIssuerDeclaration = {
  /** The exact `iss` of its tokens: an https URL, or http on this machine. */
  readonly issuer: string;
  /** Required `aud`, or several of which one must match. Not the client id of a login page, which is in id tokens. */
  readonly audience: string | readonly string[];
  /** URL of its keys. Default: `jwks_uri` of `{issuer}/.well-known/openid-configuration`. */
  readonly jwksUri?: string;
  /** Accepted signature algorithms. Default EdDSA, ES256, RS256, PS256. */
  readonly algorithms?: readonly IssuerAlgorithm[];
  /** Tolerated clock difference in seconds, 0 to 300. Default 30. */
  readonly clockSkewSeconds?: number;
  /** The most that its tokens may do. Default `['read', 'write']`. Tokens are administrators only with `admin` here. */
  readonly scopes?: readonly Scope[];
  /** Claim with the scopes of a token, as text with spaces or as a list. Without it, every token has all of `scopes`. */
  readonly scopeClaim?: ClaimPath;
  /** Claim with the roles, as a list of texts or one text. Default: no roles. */
  readonly rolesClaim?: ClaimPath;
  /** Claim with the tenant. Default: no tenant. */
  readonly tenantClaim?: ClaimPath;
};

const issuerAlgorithms = [
  'EdDSA',
  'Ed25519',
  'ES256',
  'ES384',
  'ES512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
] as const;

/** Signatures with a key pair (RFC 7518 §3.1, RFC 8037, RFC 9864); none that a public key could make. */
export type IssuerAlgorithm = (typeof issuerAlgorithms)[number];

export type TrustedIssuer = {
  readonly issuer: string;
  readonly audience: readonly string[];
  /** Undefined: discovered. */
  readonly jwksUri: string | undefined;
  readonly algorithms: readonly IssuerAlgorithm[];
  readonly clockSkewSeconds: number;
  readonly scopes: readonly Scope[];
  /** Names from the outermost one; undefined: no such claim. */
  readonly scopeClaim: readonly string[] | undefined;
  readonly rolesClaim: readonly string[] | undefined;
  readonly tenantClaim: readonly string[] | undefined;
};

const issuersMax = 64;
const issuerCharactersMax = 255;
const textCharactersMax = 2000;
const audiencesMax = 32;
const claimDepthMax = 8;
const clockSkewSecondsMax = 300;
const defaults = {
  algorithms: ['EdDSA', 'ES256', 'RS256', 'PS256'],
  clockSkewSeconds: 30,
  scopes: ['read', 'write'],
} as const;
const members: ReadonlySet<string> = new Set<keyof TrustedIssuerDeclaration>([
  'issuer',
  'audience',
  'jwksUri',
  'algorithms',
  'clockSkewSeconds',
  'scopes',
  'scopeClaim',
  'rolesClaim',
  'tenantClaim',
]);

/**
 * @param declared the member `issuers` of a configuration; undefined: none
 * @param mistakes receives a sentence for each mistake; the result is then unusable
 */
export function inspectIssuers(declared: unknown, mistakes: string[]): readonly TrustedIssuer[] {
  if (declared === undefined) return [];
  if (!Array.isArray(declared)) {
    mistakes.push(`issuers must be a list, not ${kindOf(declared)}`);
    return [];
  }
  if (declared.length > issuersMax) mistakes.push(`issuers may hold ${issuersMax} at most`);
  const issuers = declared.slice(0, issuersMax).flatMap((each: unknown, at) => {
    if (isRecord(each))
      return [inspectIssuer(each, (predicate) => mistakes.push(`issuers[${at}]${predicate}`))];
    mistakes.push(`issuers[${at}] must be an object, not ${kindOf(each)}`);
    return [];
  });
  for (const [at, { issuer }] of issuers.entries()) {
    if (issuers.findIndex((other) => other.issuer === issuer) !== at) {
      mistakes.push(`issuers[${at}] is declared twice`);
    }
  }
  return issuers;
}

type Refuse = (predicate: string) => void;

function inspectIssuer(declared: Readonly<Record<string, unknown>>, refuse: Refuse): TrustedIssuer {
  for (const name of Object.keys(declared)) {
    if (!members.has(name)) refuse(` has no member "${name}"${suggestion(name, members)}`);
  }
  const { issuer, audience, jwksUri, clockSkewSeconds = defaults.clockSkewSeconds } = declared;
  if (!isUrl(issuer) || issuer.length > issuerCharactersMax) {
    refuse(`.issuer must be an https URL of ${issuerCharactersMax} characters at most${loopbackToo}`);
  }
  const audiences = typeof audience === 'string' ? [audience] : audience;
  if (!isTexts(audiences, audiencesMax) || audiences.length === 0) {
    refuse(
      `.audience must be a text or a list of 1 to ${audiencesMax}: without it Comity would accept every token of the issuer`,
    );
  }
  if (jwksUri !== undefined && !isUrl(jwksUri)) refuse(`.jwksUri must be an https URL${loopbackToo}`);
  if (
    !Number.isInteger(clockSkewSeconds) ||
    Number(clockSkewSeconds) < 0 ||
    Number(clockSkewSeconds) > clockSkewSecondsMax
  ) {
    refuse(`.clockSkewSeconds must be a whole number from 0 to ${clockSkewSecondsMax}`);
  }
  return {
    issuer: String(issuer),
    audience: isTexts(audiences, audiencesMax) ? audiences : [],
    jwksUri: typeof jwksUri === 'string' ? jwksUri : undefined,
    algorithms: inspectAlgorithms(declared.algorithms, refuse),
    clockSkewSeconds: Number(clockSkewSeconds),
    scopes: inspectScopes(declared.scopes, refuse),
    scopeClaim: inspectClaim(declared, 'scopeClaim', refuse),
    rolesClaim: inspectClaim(declared, 'rolesClaim', refuse),
    tenantClaim: inspectClaim(declared, 'tenantClaim', refuse),
  };
}

function inspectAlgorithms(declared: unknown, refuse: Refuse): readonly IssuerAlgorithm[] {
  if (declared === undefined) return defaults.algorithms;
  if (!isTexts(declared, issuerAlgorithms.length) || declared.length === 0) {
    refuse('.algorithms must be a list of names such as ES256');
    return [];
  }
  for (const name of declared) {
    if (name === 'none' || name.startsWith('HS')) {
      refuse(`.algorithms holds ${name}, with which anyone who knows the public key could sign`);
    } else if (!isAlgorithm(name)) {
      refuse(`.algorithms holds "${name}", which is not one of ${issuerAlgorithms.join(', ')}`);
    }
  }
  return declared.filter(isAlgorithm);
}

function inspectScopes(declared: unknown, refuse: Refuse): readonly Scope[] {
  if (declared === undefined) return defaults.scopes;
  if (!isTexts(declared, allScopes.length)) {
    refuse(`.scopes must be a list of ${allScopes.join(', ')}`);
    return [];
  }
  for (const name of declared) {
    if (!isScope(name)) refuse(`.scopes holds "${name}", which is not a scope${suggestion(name, allScopes)}`);
  }
  return declared.filter(isScope);
}

function inspectClaim(
  declared: Readonly<Record<string, unknown>>,
  name: 'scopeClaim' | 'rolesClaim' | 'tenantClaim',
  refuse: Refuse,
): readonly string[] | undefined {
  const value = declared[name];
  if (value === undefined) return undefined;
  const path = typeof value === 'string' ? [value] : value;
  if (isTexts(path, claimDepthMax) && path.length > 0) return path;
  refuse(`.${name} must be the name of a claim, or a list of ${claimDepthMax} names at most that lead to it`);
  return undefined;
}

const loopbackToo = ' without query and fragment (http:// only for 127.0.0.1, [::1] and localhost)';

function isUrl(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > textCharactersMax || !URL.canParse(value)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(value);
  if (username !== '' || password !== '' || search !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

function isTexts(value: unknown, most: number): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= most &&
    value.every((text) => typeof text === 'string' && text !== '' && text.length <= textCharactersMax)
  );
}

function isAlgorithm(name: string): name is IssuerAlgorithm {
  return issuerAlgorithms.some((algorithm) => algorithm === name);
}

function isScope(name: string): name is Scope {
  return allScopes.some((scope) => scope === name);
}
