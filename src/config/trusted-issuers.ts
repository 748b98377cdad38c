/**
 * Trusted issuers of access tokens (§5.2, RFC 9068), as a configuration declares them. A declaration that would accept tokens with a shared
 * secret, without a signature, or with keys fetched without TLS is refused at the start.
 */
import { Type } from 'typebox';
import { scopes as allScopes, type Scope } from '../model/principal.ts';
import { suggestion } from './inspection.ts';
import { isLoopbackHost, signatureAlgorithms } from './oauth-providers.ts';
import {
  inspectShape,
  listInParts,
  type Reporter,
  type SoundParts,
  textThat,
  textUpTo,
  wholeWithin,
} from './shape.ts';

/** Name of a claim, or the path to a nested one, such as `['realm_access', 'roles']`. */
export type ClaimPath = string | readonly string[];

export type TrustedIssuerDeclaration = {
  /** The exact `iss` of its tokens: an https URL, or http on this machine. */
  readonly issuer: string;
  /** Required `aud`, or several of which one must match. Not the client id of a login page, which is in id tokens. */
  readonly audience: string | readonly string[];
  /** Claim that must name the audience where tokens have no `aud`; an `aud` that a token has must match too. Default `aud`. */
  readonly audienceClaim?: AudienceClaim;
  /** Accepted `typ` of its tokens; one without `typ` is then refused. Default `JWT`, `at+jwt` or none. */
  readonly types?: readonly string[];
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

const audienceClaims = ['aud', 'client_id', 'azp'] as const;
type AudienceClaim = (typeof audienceClaims)[number];

export type IssuerAlgorithm = (typeof signatureAlgorithms)[number];

export type TrustedIssuer = {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly audienceClaim: AudienceClaim;
  /** In lower case and without `application/`; undefined: the default. */
  readonly types: readonly string[] | undefined;
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
const typesMax = 8;
const claimDepthMax = 8;
const clockSkewSecondsMax = 300;
const defaults = {
  algorithms: ['EdDSA', 'ES256', 'RS256', 'PS256'],
  clockSkewSeconds: 30,
  scopes: ['read', 'write'],
} as const;

const loopbackToo = ' without query and fragment (http:// only for 127.0.0.1, [::1] and localhost)';
const anyText = textUpTo(textCharactersMax);
const claim = Type.Optional(
  Type.Union([anyText, Type.Array(anyText, { minItems: 1, maxItems: claimDepthMax })], {
    must: `must be the name of a claim, or a list of ${claimDepthMax} names at most that lead to it`,
  }),
);
const issuerShape = Type.Object({
  issuer: textThat((url) => url.length <= issuerCharactersMax && isUrl(url), {
    must: `must be an https URL of ${issuerCharactersMax} characters at most${loopbackToo}`,
  }),
  audience: Type.Union([anyText, Type.Array(anyText, { minItems: 1, maxItems: audiencesMax })], {
    must: `must be a text or a list of 1 to ${audiencesMax}: without it Comity would accept every token of the issuer`,
  }),
  audienceClaim: Type.Optional(
    Type.Union(
      audienceClaims.map((name) => Type.Literal(name)),
      { must: `must be ${audienceClaims.join(', ')}` },
    ),
  ),
  types: Type.Optional(
    Type.Array(anyText, {
      ...{ minItems: 1, maxItems: typesMax },
      must: `must be a list of 1 to ${typesMax} values of typ, such as JWT`,
    }),
  ),
  jwksUri: Type.Optional(textThat(isUrl, { must: `must be an https URL${loopbackToo}` })),
  clockSkewSeconds: Type.Optional(wholeWithin(0, clockSkewSecondsMax)),
  algorithms: Type.Optional(
    Type.Array(anyText, {
      ...{ minItems: 1, maxItems: signatureAlgorithms.length },
      must: 'must be a list of names such as ES256',
    }),
  ),
  scopes: Type.Optional(
    Type.Array(anyText, { maxItems: allScopes.length, must: `must be a list of ${allScopes.join(', ')}` }),
  ),
  scopeClaim: claim,
  rolesClaim: claim,
  tenantClaim: claim,
});
const issuersShape = listInParts(Type.Unknown(), { maxItems: issuersMax });

/**
 * @param declared the member `issuers` of a configuration; undefined: none
 * @param mistakes receives a sentence for each mistake; the result is then unusable
 */
export function inspectIssuers(declared: unknown, mistakes: string[]): readonly TrustedIssuer[] {
  if (declared === undefined) return [];
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  const issuers = (inspectShape(issuersShape, declared, 'issuers', report) ?? []).flatMap((each, at) => {
    const sound = inspectShape(issuerShape, each, `issuers[${at}]`, report);
    return sound === undefined
      ? []
      : [resolveIssuer(sound, (predicate) => report(`issuers[${at}]${predicate}`))];
  });
  for (const [at, { issuer }] of issuers.entries()) {
    if (issuer !== '' && issuers.findIndex((other) => other.issuer === issuer) !== at)
      report(`issuers[${at}] is declared twice`);
  }
  return issuers;
}

function resolveIssuer(declared: SoundParts<typeof issuerShape>, refuse: Reporter): TrustedIssuer {
  const { issuer = '', jwksUri, clockSkewSeconds = defaults.clockSkewSeconds } = declared;
  return {
    ...{ issuer, jwksUri, clockSkewSeconds },
    audience: [declared.audience ?? []].flat(),
    audienceClaim: declared.audienceClaim ?? 'aud',
    types: declared.types?.map(plainType),
    algorithms: inspectAlgorithms(declared.algorithms ?? defaults.algorithms, refuse),
    scopes: inspectScopes(declared.scopes ?? defaults.scopes, refuse),
    scopeClaim: pathOf(declared.scopeClaim),
    rolesClaim: pathOf(declared.rolesClaim),
    tenantClaim: pathOf(declared.tenantClaim),
  };
}

const mediaTypePrefix = /^application\//;

/** RFC 7515 §4.1.9: case does not matter, and `application/` may be left out. */
export function plainType(typ: string): string {
  return typ.toLowerCase().replace(mediaTypePrefix, '');
}

function inspectAlgorithms(declared: readonly string[], refuse: Reporter): readonly IssuerAlgorithm[] {
  for (const name of declared) {
    if (name === 'none' || name.startsWith('HS')) {
      refuse(`.algorithms holds ${name}, with which anyone who knows the public key could sign`);
    } else if (!isAlgorithm(name)) {
      refuse(`.algorithms holds "${name}", which is not one of ${signatureAlgorithms.join(', ')}`);
    }
  }
  return declared.filter(isAlgorithm);
}

function inspectScopes(declared: readonly string[], refuse: Reporter): readonly Scope[] {
  for (const name of declared) {
    if (!isScope(name)) refuse(`.scopes holds "${name}", which is not a scope${suggestion(name, allScopes)}`);
  }
  return declared.filter(isScope);
}

function pathOf(claim: ClaimPath | undefined): readonly string[] | undefined {
  return typeof claim === 'string' ? [claim] : claim;
}

function isUrl(value: string): boolean {
  if (value.length > textCharactersMax || !URL.canParse(value)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(value);
  if (username !== '' || password !== '' || search !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

function isAlgorithm(name: string): name is IssuerAlgorithm {
  return signatureAlgorithms.some((algorithm) => algorithm === name);
}

function isScope(name: string): name is Scope {
  return allScopes.some((scope) => scope === name);
}
