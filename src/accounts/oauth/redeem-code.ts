/**
 * Exchanges a code for an identity (§5.3.3, §5.3.4). For an OpenID provider it checks the ID token's issuer, audience, times,
 * nonce, algorithm and signature, the last although the token came over TLS (OpenID Connect Core 1.0 §3.1.3.7); for a plain provider it
 * trusts the userinfo URL. Codes, tokens and claims do not leave this file.
 */
import { compactVerify, decodeProtectedHeader } from 'jose';
import {
  authorizationCodeGrantRequest,
  expectNoNonce,
  getValidatedIdTokenClaims,
  type JsonValue,
  nopkce,
  OperationProcessingError,
  processAuthorizationCodeResponse,
  processUserInfoResponse,
  protectedResourceRequest,
  ResponseBodyError,
  type TokenEndpointResponse,
  userInfoRequest,
  validateApplicationLevelSignature,
  validateAuthResponse,
} from 'oauth4webapi';
import type { OpenIdProvider, PlainProvider } from '../../config/oauth-providers.ts';
import { normalizeEmail } from '../../mail/email.ts';
import {
  ProviderFailure,
  type ProviderFetch,
  type ProviderServer,
  providerFailure,
  requestOptions,
} from './provider-server.ts';
import type { Proofs } from './sign-ins.ts';

type Redemption = {
  readonly server: ProviderServer;
  readonly parameters: ReadonlyMap<string, string>;
  readonly proofs: Proofs;
  readonly redirectUri: string;
  readonly fetch: ProviderFetch;
  readonly timeoutMs: number;
};

type Exchange = Redemption & { readonly options: ReturnType<typeof requestOptions> };

/** Returns undefined if the callback does not belong to this sign-in. @throws ProviderFailure */
export async function redeemCode(redemption: Redemption): Promise<ProviderIdentity | undefined> {
  const { server, fetch, timeoutMs } = redemption;
  const parameters = validParameters(redemption);
  if (parameters === undefined) return undefined;
  const exchange = { ...redemption, options: requestOptions(fetch, AbortSignal.timeout(timeoutMs)) };
  try {
    return server.provider.kind === 'openid'
      ? await openIdIdentity(exchange, server.provider, parameters)
      : await plainIdentity(exchange, server.provider, parameters);
  } catch (error) {
    if (isForeignCode(error)) return undefined;
    throw providerFailure(error, 'sign-in');
  }
}

/** Returns undefined if the issuer is another (RFC 9207 §2.4) or there is no code. */
function validParameters({ server, parameters, proofs }: Redemption): URLSearchParams | undefined {
  const given = new URLSearchParams([...parameters]);
  if (!given.get('code')) return undefined;
  // A plain provider has no issuer to compare; its own callback path prevents mix-up (RFC 9700 §4.4.2.2).
  if (server.provider.kind === 'plain') given.delete('iss');
  try {
    return validateAuthResponse(server.as, server.client, given, proofs.state);
  } catch {
    // Every reason for the error came with the URL.
    return undefined;
  }
}

async function requestTokens(
  { server, proofs, redirectUri, options }: Exchange,
  parameters: URLSearchParams,
): Promise<Response> {
  const { as, client, clientAuth } = server;
  const response = await authorizationCodeGrantRequest(
    as,
    client,
    clientAuth,
    parameters,
    redirectUri,
    server.provider.pkce === 'off' ? nopkce : proofs.codeVerifier,
    options,
  );
  return readableTokens(response);
}

/**
 * Rewrites what some providers answer otherwise than RFC 6749 §5.1 and §5.2, and what has one meaning all the same: a form, a list of scopes, no
 * `token_type`, an error with status 200.
 */
async function readableTokens(response: Response): Promise<Response> {
  if (response.status !== 200) return response;
  const members = readMembers(response.headers.get('content-type') ?? '', await response.clone().text());
  if (members === undefined) return response;
  const { access_token, token_type, scope, error } = members;
  const status = access_token === undefined && typeof error === 'string' ? 400 : 200;
  const rewritten = {
    ...members,
    ...(token_type === undefined || token_type === '' ? { token_type: 'bearer' } : {}),
    ...(Array.isArray(scope) ? { scope: scope.join(' ') } : {}),
  };
  return new Response(JSON.stringify(rewritten), { status, headers: { 'content-type': 'application/json' } });
}

function readMembers(contentType: string, text: string): Readonly<Record<string, unknown>> | undefined {
  if (contentType.startsWith('application/x-www-form-urlencoded'))
    return Object.fromEntries(new URLSearchParams(text));
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(contentType)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    // The library says what is wrong with it.
    return undefined;
  }
}

function isJson(contentType: string): boolean {
  return contentType.startsWith('application/json');
}

/** HS256 is accepted only from a provider that is configured with it, and its key is the client secret, never a public key. */
async function verifySignature({ server, options }: Exchange, jwt: string, ref: Response): Promise<void> {
  const { as, provider } = server;
  if (provider.algorithms?.includes('HS256') === true && decodeProtectedHeader(jwt).alg === 'HS256') {
    await compactVerify(jwt, new TextEncoder().encode(provider.clientSecret), { algorithms: ['HS256'] });
  } else await validateApplicationLevelSignature(as, ref, options);
}

async function openIdIdentity(
  exchange: Exchange,
  { issuer, nonce }: OpenIdProvider,
  parameters: URLSearchParams,
): Promise<ProviderIdentity> {
  const { server, proofs } = exchange;
  const { as, client } = server;
  const response = await requestTokens(exchange, parameters);
  const tokens = await processAuthorizationCodeResponse(as, client, response, {
    expectedNonce: nonce === 'off' ? expectNoNonce : proofs.nonce,
    requireIdToken: true,
  });
  const claims = getValidatedIdTokenClaims(tokens);
  if (claims === undefined || tokens.id_token === undefined)
    throw new ProviderFailure(`the provider ${issuer} returned no ID token`);
  await verifySignature(exchange, tokens.id_token, response);
  const stated = claims.email === undefined ? await userinfo(exchange, tokens, claims.sub) : claims;
  const profile = { ...stated, name: stated.name ?? nameOfForm(parameters.get('user')) };
  return identityOf(claims.iss, claims.sub, profile, 'email_verified');
}

/**
 * Apple sends the name beside the code, at the first sign-in, as `{"name": {"firstName", "lastName"}}`. It came through the browser, so it
 * is only what the person says, and nothing else is taken from it.
 */
function nameOfForm(user: string | null): string | undefined {
  if (user === null) return undefined;
  try {
    const { name } = object(JSON.parse(user) as JsonValue);
    const { firstName, lastName } = object(name);
    return [firstName, lastName].filter((part) => typeof part === 'string').join(' ');
  } catch {
    // A name is no condition of a sign-in.
    return undefined;
  }
}

/** Used if the ID token has no address (OpenID Connect Core 1.0 §5.4). */
async function userinfo(exchange: Exchange, tokens: TokenEndpointResponse, subject: string): Promise<Claims> {
  const { server, options } = exchange;
  const { as, client } = server;
  if (as.userinfo_endpoint === undefined) return {};
  const response = await userInfoRequest(as, client, tokens.access_token, options);
  const isSigned = response.headers.get('content-type')?.startsWith('application/jwt') === true;
  const jwt = isSigned ? await response.clone().text() : '';
  const claims = await processUserInfoResponse(as, client, subject, response);
  // A signed document proves its origin only by its signature.
  if (isSigned) await verifySignature(exchange, jwt, response);
  return claims as Claims;
}

async function plainIdentity(
  exchange: Exchange,
  provider: PlainProvider,
  parameters: URLSearchParams,
): Promise<ProviderIdentity> {
  const { as, client } = exchange.server;
  const response = await requestTokens(exchange, parameters);
  const { access_token } = await processAuthorizationCodeResponse(as, client, response);
  const person = object(await ask(exchange, access_token, provider.userinfoUrl));
  const address =
    provider.emailsUrl === undefined ? {} : primary(await ask(exchange, access_token, provider.emailsUrl));
  const claims = { ...person, ...address };
  return identityOf(provider.userinfoUrl, plainSubject(person), claims, provider.verifiedMember);
}

async function ask({ options }: Exchange, accessToken: string, url: string): Promise<JsonValue> {
  const headers = new Headers({ accept: 'application/json' });
  const response = await protectedResourceRequest(accessToken, 'GET', new URL(url), headers, null, options);
  if (response.status !== 200)
    throw new ProviderFailure(`userinfo: the provider returned status ${response.status}`);
  try {
    return (await response.json()) as JsonValue;
  } catch {
    // The parser's message quotes the response.
    throw new ProviderFailure('userinfo: the response is not JSON');
  }
}

function object(value: JsonValue | undefined): Claims {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ProviderFailure('userinfo: the response is not a JSON object');
  }
  return value;
}

/** Returns the primary address, verified or not. */
function primary(listed: JsonValue): Claims {
  const entries = Array.isArray(listed) ? listed.map(object) : [];
  const { email, verified } = entries.find((entry) => entry.primary === true) ?? {};
  return { email, verified };
}

/** An unknown code (RFC 6749 §5.2) or an ID token with another nonce: both happen if a code is put into the callback of another sign-in. */
function isForeignCode(error: unknown): boolean {
  if (error instanceof ResponseBodyError) return error.error === 'invalid_grant';
  if (!(error instanceof OperationProcessingError)) return false;
  const { cause } = error;
  return typeof cause === 'object' && cause !== null && 'claim' in cause && cause.claim === 'nonce';
}

/**
 * The identity of a person at a provider, from an ID token or a userinfo document (OpenID Connect Core 1.0 §5.1). An address is verified
 * only if the claim is `true`, which Apple and Cognito write as text.
 */
export type ProviderIdentity = {
  /** With `subject` it identifies one person for ever (§2). */
  readonly issuer: string;
  readonly subject: string;
  /** In the form of `normalizeEmail`; undefined if the provider sent no valid address. */
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  readonly name: string | undefined;
};

type Claims = { readonly [name: string]: JsonValue | undefined };

const subjectCharactersMax = 1024;
const nameCharactersMax = 200;

/** @param subject the `sub` claim, or the member that a plain provider has instead */
function identityOf(
  issuer: string,
  subject: string,
  claims: Claims,
  verifiedMember: string,
): ProviderIdentity {
  if (subject === '' || subject.length > subjectCharactersMax) {
    throw new ProviderFailure(
      `the subject from the provider must have 1 to ${subjectCharactersMax} characters`,
    );
  }
  const email = typeof claims.email === 'string' ? normalizeEmail(claims.email) : undefined;
  return {
    issuer,
    subject,
    email,
    emailVerified: email !== undefined && [true, 'true'].some((value) => value === claims[verifiedMember]),
    name: readName(claims),
  };
}

/** Returns the subject of a plain provider, most of which send a number or a string as `id`. */
function plainSubject(claims: Claims): string {
  const subject = claims.sub ?? claims.id;
  if (typeof subject === 'string') return subject;
  return Number.isSafeInteger(subject) ? String(subject) : '';
}

function readName(claims: Claims): string | undefined {
  const { name } = claims;
  if (typeof name !== 'string') return undefined;
  const shown = name.slice(0, nameCharactersMax).toWellFormed().replace(controls, ' ').trim();
  return shown === '' ? undefined : shown;
}

const controls = /\p{Cc}/gu;
