/**
 * Endpoints and client authentication of a provider, for oauth4webapi, and the request that leads a browser to it. The discovery document of an OpenID provider is cached for an
 * hour, and with it the provider's keys.
 */
import { hash } from 'node:crypto';
import { importPKCS8, SignJWT } from 'jose';
import {
  AuthorizationResponseError,
  type AuthorizationServer,
  allowInsecureRequests,
  type Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  discoveryRequest,
  OperationProcessingError,
  type ProtectedResourceRequestBody,
  processDiscoveryResponse,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'oauth4webapi';
import { isLoopbackHost, type OAuthProvider, type OpenIdProvider } from '../../config/oauth-providers.ts';
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
export function createProviderServers(services: Services, fetch: ProviderFetch): ProviderServers {
  const { clock } = services;
  const kept = new Map<string, Kept>();

  return (provider) => {
    const known = kept.get(provider.name);
    if (known !== undefined && clock() < known.until) return known.server;
    const server = loadServer(services, provider, fetch);
    const entry = { until: clock() + discoveryMs, server };
    kept.set(provider.name, entry);
    server.catch(() => kept.get(provider.name) === entry && kept.delete(provider.name));
    return server;
  };
}

/** Options of every request to the provider. The fetch itself refuses clear text except to this machine. */
export function requestOptions(fetch: ProviderFetch, signal: AbortSignal) {
  return { [customFetch]: fetch, [allowInsecureRequests]: true, signal };
}

async function loadServer(
  { clock, settings }: Services,
  provider: OAuthProvider,
  fetch: ProviderFetch,
): Promise<ProviderServer> {
  const client = { client_id: provider.clientId };
  const as = await metadataOf(provider, fetch, settings.issuerTimeoutMs);
  return { provider, as, client, clientAuth: chooseClientAuth(provider, as, clock) };
}

async function metadataOf(
  provider: OAuthProvider,
  fetch: ProviderFetch,
  timeoutMs: number,
): Promise<AuthorizationServer> {
  if (provider.kind === 'openid') {
    const found = await discover(provider, fetch, timeoutMs);
    const idToken = provider.algorithms ?? found.id_token_signing_alg_values_supported;
    const userinfo = provider.algorithms ?? found.userinfo_signing_alg_values_supported ?? idToken;
    return {
      ...found,
      ...(idToken === undefined ? {} : { id_token_signing_alg_values_supported: [...idToken] }),
      ...(userinfo === undefined ? {} : { userinfo_signing_alg_values_supported: [...userinfo] }),
    };
  }
  const { authorizationUrl, tokenUrl, userinfoUrl } = provider;
  return {
    // Without discovery there is no issuer; the library requires one but does not compare it.
    issuer: userinfoUrl,
    authorization_endpoint: authorizationUrl,
    token_endpoint: tokenUrl,
    userinfo_endpoint: userinfoUrl,
  };
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

function chooseClientAuth(provider: OAuthProvider, as: AuthorizationServer, clock: () => number): ClientAuth {
  const { clientSecret, keyId } = provider;
  if (keyId !== undefined) return signedSecret(provider, as.issuer, clock);
  return (provider.clientAuth ?? discoveredAuth(provider, as)) === 'basic'
    ? ClientSecretBasic(clientSecret)
    : ClientSecretPost(clientSecret);
}

/** OpenID Connect Discovery 1.0 §3: the default is `client_secret_basic`. */
function discoveredAuth({ kind }: OAuthProvider, as: AuthorizationServer): 'basic' | 'post' {
  const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return kind === 'openid' && methods.includes('client_secret_basic') ? 'basic' : 'post';
}

/** Apple takes no secret that is older than six months; each request has its own. */
function signedSecret(
  { clientId, clientSecret, keyId = '', teamId = '' }: OAuthProvider,
  issuer: string,
  clock: () => number,
): ClientAuth {
  const alg = 'ES256';
  return async (as, client, body, headers) => {
    const key = await importPKCS8(clientSecret.replaceAll('\\n', '\n'), alg).catch(() => {
      // The parser's message may quote the key.
      throw new ProviderFailure('the client secret is no private key for ES256');
    });
    const iat = Math.floor(clock() / 1000);
    const secret = await new SignJWT({
      iss: teamId,
      sub: clientId,
      aud: issuer,
      iat,
      exp: iat + secretSeconds,
    })
      .setProtectedHeader({ alg, kid: keyId })
      .sign(key);
    return ClientSecretPost(secret)(as, client, body, headers);
  };
}

const secretSeconds = 300;

export type ProviderFetch = (url: string, options: ProviderRequest) => Promise<Response>;

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
export function providerFailure(error: unknown, during: string): ProviderFailure {
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

/** Builds the authorization request (§5.3.1; RFC 6749 §4.1.1, RFC 7636 §4.3, OpenID Connect Core 1.0 §3.1.2.1). */
export function authorizationUrl(
  endpoint: URL,
  { provider, client }: ProviderServer,
  proofs: Proofs,
  redirectUri: string,
): string {
  const url = new URL(endpoint);
  const parameters: readonly (readonly [string, string])[] = [
    ['response_type', 'code'],
    ['client_id', client.client_id],
    ['redirect_uri', redirectUri],
    ['scope', provider.scope],
    ['state', proofs.state],
    ...(provider.pkce === 'off'
      ? []
      : ([
          ['code_challenge', hash('sha256', proofs.codeVerifier, 'base64url')],
          ['code_challenge_method', 'S256'],
        ] as const)),
    ...(provider.kind === 'openid' && provider.nonce !== 'off' ? [['nonce', proofs.nonce] as const] : []),
    ...(provider.responseMode === 'form_post' ? [['response_mode', 'form_post'] as const] : []),
    ...(provider.claims === undefined ? [] : [['claims', provider.claims] as const]),
  ];
  for (const [name, value] of parameters) url.searchParams.set(name, value);
  return url.href;
}

/** @throws ProviderFailure if it is not an https URL or on this machine */
export function authorizationEndpoint({ as }: ProviderServer): URL {
  const text = as.authorization_endpoint;
  if (text === undefined || !isPrivateLine(text))
    throw new ProviderFailure('discovery: no usable authorization_endpoint');
  return new URL(text);
}
