/**
 * Endpoints and client authentication of a provider, for oauth4webapi. The discovery document of an OpenID provider is cached for an
 * hour, and with it the provider's keys.
 */
import {
  AuthorizationResponseError,
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  discoveryRequest,
  getValidatedIdTokenClaims,
  type JsonValue,
  OperationProcessingError,
  type ProtectedResourceRequestBody,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processUserInfoResponse,
  protectedResourceRequest,
  ResponseBodyError,
  type TokenEndpointResponse,
  userInfoRequest,
  validateApplicationLevelSignature,
  validateAuthResponse,
  WWWAuthenticateChallengeError,
} from 'oauth4webapi';
import {
  isLoopbackHost,
  type OAuthProvider,
  type OpenIdProvider,
  type PlainProvider,
} from '../../config/oauth-providers.ts';
import { normalizeEmail } from '../../mail/email.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Proofs } from './sign-ins.ts';

export type ProviderServer = {
  readonly provider: OAuthProvider;
  readonly as: AuthorizationServer;
  readonly client: Client;
  readonly clientAuth: ClientAuth;
};

type ProviderServers = (provider: OAuthProvider) => Promise<ProviderServer>;

const discoveryMs = 3_600_000;

type Kept = { readonly until: number; readonly server: Promise<ProviderServer> };

/** The returned function rejects with `ProviderFailure`. */
export function createProviderServers({ clock, settings }: Services, fetch: ProviderFetch): ProviderServers {
  const kept = new Map<string, Kept>();

  return (provider) => {
    const known = kept.get(provider.name);
    if (known !== undefined && clock() < known.until) return known.server;
    const server = loadServer(provider, fetch, settings.issuerTimeoutMs);
    const entry = { until: clock() + discoveryMs, server };
    kept.set(provider.name, entry);
    server.catch(() => kept.get(provider.name) === entry && kept.delete(provider.name));
    return server;
  };
}

/** Options of every request to the provider. The fetch itself refuses clear text except to this machine. */
function requestOptions(fetch: ProviderFetch, signal: AbortSignal) {
  return { [customFetch]: fetch, [allowInsecureRequests]: true, signal };
}

async function loadServer(
  provider: OAuthProvider,
  fetch: ProviderFetch,
  timeoutMs: number,
): Promise<ProviderServer> {
  const client = { client_id: provider.clientId };
  if (provider.kind === 'openid') {
    const as = await discover(provider, fetch, timeoutMs);
    return { provider, as, client, clientAuth: chooseClientAuth(provider, as) };
  }
  const { authorizationUrl, tokenUrl, userinfoUrl } = provider;
  const as = {
    // Without discovery there is no issuer; the library requires one but does not compare it.
    issuer: userinfoUrl,
    authorization_endpoint: authorizationUrl,
    token_endpoint: tokenUrl,
    userinfo_endpoint: userinfoUrl,
  };
  return { provider, as, client, clientAuth: ClientSecretPost(provider.clientSecret) };
}

async function discover(
  provider: OpenIdProvider,
  fetch: ProviderFetch,
  timeoutMs: number,
): Promise<AuthorizationServer> {
  const issuer = new URL(provider.issuer);
  try {
    const response = await discoveryRequest(issuer, requestOptions(fetch, AbortSignal.timeout(timeoutMs)));
    return await processDiscoveryResponse(issuer, response);
  } catch (error) {
    throw providerFailure(error, 'discovery');
  }
}

/** OpenID Connect Discovery 1.0 §3: the default is `client_secret_basic`. */
function chooseClientAuth(provider: OpenIdProvider, as: AuthorizationServer): ClientAuth {
  const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic')
    ? ClientSecretBasic(provider.clientSecret)
    : ClientSecretPost(provider.clientSecret);
}

type ProviderFetch = (url: string, options: ProviderRequest) => Promise<Response>;

type ProviderRequest = {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: ProtectedResourceRequestBody;
  readonly signal?: AbortSignal | undefined;
};

/**
 * Sends a request to a provider and reads the whole response, bounded in octets (the signal bounds the time), over TLS unless the
 * provider is on this machine. Redirects are not followed: neither OAuth nor OpenID Connect responds with one.
 */
export async function fetchFromProvider(url: string, options: ProviderRequest): Promise<Response> {
  if (!isPrivateLine(url)) throw new ProviderFailure('the provider named a URL without TLS');
  const { method, headers, body = null, signal = null } = options;
  // Comity sends only forms; the library's type allows more.
  const content = body === null ? null : String(body);
  const response = await fetch(url, { method, headers, body: content, signal, redirect: 'manual' });
  const bytes = await readBounded(response);
  if (bytes === undefined)
    throw new ProviderFailure(`the response of the provider exceeds ${answerBytesMax} octets`);
  return new Response(bytes.length === 0 ? null : bytes, {
    status: response.status,
    headers: response.headers,
  });
}

/** Discovery documents and key sets have some kilobytes. */
const answerBytesMax = 512 * 1024;

/** True if the URL uses TLS or is on this machine. */
export function isPrivateLine(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** Reads the content of a response; undefined, and the connection is closed, if it exceeds `answerBytesMax`. */
export async function readBounded(response: Response): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the body and closes the connection.
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > answerBytesMax) return undefined;
    chunks.push(chunk);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/**
 * A failure of a provider, described without tokens, codes and claims. Errors of oauth4webapi carry these as causes, so they never leave
 * this folder.
 */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure';
}

/** Converts an error to a ProviderFailure; `during` names the step, for the log. */
function providerFailure(error: unknown, during: string): ProviderFailure {
  return error instanceof ProviderFailure ? error : new ProviderFailure(`${during}: ${describe(error)}`);
}

/** RFC 6749 §5.2: an unbounded word of a closed alphabet. */
const errorCode = /^[a-z_]{1,40}$/;

function describe(error: unknown): string {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    return errorCode.test(error.error)
      ? `the provider returned the error ${error.error}`
      : 'the provider returned an error';
  }
  if (error instanceof WWWAuthenticateChallengeError) return `the provider returned status ${error.status}`;
  if (error instanceof OperationProcessingError) return error.message;
  if (!(error instanceof Error)) return 'unknown error';
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no response in time';
  const code = readCode(error) ?? readCode(error.cause);
  return code === undefined ? error.message : `${error.message} (${code})`;
}

/** `fetch failed` has its reason in the cause, such as `ECONNREFUSED`. */
function readCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

// Exchanges a code for an identity (§5.3.3, §5.3.4). For an OpenID provider it checks the ID token's issuer, audience, times,
// nonce, algorithm and signature, the last although the token came over TLS (OpenID Connect Core 1.0 §3.1.3.7); for a plain provider it
// trusts the userinfo URL. Codes, tokens and claims do not leave this file.

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

function requestTokens(
  { server, proofs, redirectUri, options }: Exchange,
  parameters: URLSearchParams,
): Promise<Response> {
  const { as, client, clientAuth } = server;
  return authorizationCodeGrantRequest(
    as,
    client,
    clientAuth,
    parameters,
    redirectUri,
    proofs.codeVerifier,
    options,
  );
}

async function openIdIdentity(
  exchange: Exchange,
  { issuer }: OpenIdProvider,
  parameters: URLSearchParams,
): Promise<ProviderIdentity> {
  const { server, proofs, options } = exchange;
  const { as, client } = server;
  const response = await requestTokens(exchange, parameters);
  const tokens = await processAuthorizationCodeResponse(as, client, response, {
    expectedNonce: proofs.nonce,
    requireIdToken: true,
  });
  await validateApplicationLevelSignature(as, response, options);
  const claims = getValidatedIdTokenClaims(tokens);
  if (claims === undefined) throw new ProviderFailure(`the provider ${issuer} returned no ID token`);
  const profile = claims.email === undefined ? await userinfo(server, tokens, claims.sub, options) : claims;
  return identityOf(claims.iss, claims.sub, profile, 'email_verified');
}

/** Used if the ID token has no address (OpenID Connect Core 1.0 §5.4). */
async function userinfo(
  { as, client }: ProviderServer,
  tokens: TokenEndpointResponse,
  subject: string,
  options: Exchange['options'],
): Promise<Claims> {
  if (as.userinfo_endpoint === undefined) return {};
  const response = await userInfoRequest(as, client, tokens.access_token, options);
  const claims = await processUserInfoResponse(as, client, subject, response);
  // A signed document proves its origin only by its signature.
  if (response.headers.get('content-type')?.startsWith('application/jwt') === true) {
    await validateApplicationLevelSignature(as, response, options);
  }
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
 * only if the claim is the boolean `true`.
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
    emailVerified: email !== undefined && claims[verifiedMember] === true,
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
