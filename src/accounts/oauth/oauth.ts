/**
 * Sign-in by a provider (§5.3): `start` redirects the browser to the provider, `finish` handles its callback. The other files of this
 * folder hold one step each.
 */
import { hash } from 'node:crypto';
import { isLoopbackHost, type OAuthProvider } from '../../config/oauth-providers.ts';
import type { Problem } from '../../http/problem.ts';
import { readCookie } from '../../http/syntax/cookie.ts';
import type { Ask } from '../../kernel/resource.ts';
import type { AccountParts } from '../account-parts.ts';
import type { From } from '../audit-fact.ts';
import { type Entered, enterAccount } from './enter-account.ts';
import {
  createProviderServers,
  fetchFromProvider,
  ProviderFailure,
  type ProviderServer,
} from './provider-server.ts';
import { redeemCode } from './redeem-code.ts';
import { createSignIns, isSecret, type Proofs, type SignIn } from './sign-ins.ts';

export type Start = SignIn & {
  /** The browser secret from the cookie; undefined if it is missing or invalid. */
  readonly browser: string | undefined;
};

export type Started =
  | { readonly kind: 'started'; readonly location: string; readonly fields: readonly string[] }
  | { readonly kind: 'refused'; readonly problem: Problem };

export type Finish = From & {
  readonly provider: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly browser: string | undefined;
  readonly ask: Ask;
};

export type Finished = Exclude<Entered, { kind: 'refused' }> & { readonly redirect: string | null };

export type OAuth = {
  readonly has: (provider: string) => boolean;
  start(start: Start): Promise<Started>;
  /** Finishes a sign-in; no callback works twice. */
  finish(finish: Finish): Promise<Finished | { readonly kind: 'refused'; readonly problem: Problem }>;
};

const secretBytes = 32;
const unavailable: Problem = { code: 'provider_unavailable' };
const invalid: Problem = { code: 'sign_in_invalid' };

export function createOAuth(parts: AccountParts, providers: ReadonlyMap<string, OAuthProvider>): OAuth {
  const { base, origin, random, observe, settings } = parts;
  const signIns = createSignIns(parts);
  const servers = createProviderServers(parts, fetchFromProvider);
  const callbackUrl = (name: string): string => `${origin()}${base}/auth/oauth/${name}/callback`;

  async function start({ browser, ...signIn }: Start): Promise<Started> {
    const provider = providerNamed(signIn.provider);
    const secret = browser ?? random(secretBytes).toString('base64url');
    try {
      // Before storing anything: an unreachable provider leaves no rows.
      const server = await servers(provider);
      const endpoint = authorizationEndpoint(server);
      const proofs = await signIns.begin(signIn, secret);
      const location = authorizationUrl(endpoint, server, proofs, callbackUrl(provider.name));
      return { kind: 'started', location, fields: setBrowserSecret(secret, settings.signInSeconds) };
    } catch (error) {
      return failed(provider.name, error);
    }
  }

  async function finish({ provider: name, parameters, browser, ask, ...from }: Finish) {
    const provider = providerNamed(name);
    const state = parameters.get('state');
    if (state === undefined || !isSecret(state) || browser === undefined) return refused(invalid);
    const taken = await signIns.take(name, state, browser);
    if (taken === undefined) return refused(invalid);
    const reason = parameters.get('error');
    if (reason !== undefined) return refused(deniedBy(reason));
    const { signIn, proofs } = taken;
    try {
      const server = await servers(provider);
      const identity = await redeemCode({
        server,
        parameters,
        proofs,
        redirectUri: callbackUrl(name),
        fetch: fetchFromProvider,
        timeoutMs: settings.issuerTimeoutMs,
      });
      if (identity === undefined) return refused(invalid);
      const { link, redirect } = signIn;
      const arrival = { provider: name, link, identity, cookie: redirect !== null, ask, ...from };
      const entered = await enterAccount(parts, arrival);
      return entered.kind === 'refused' ? entered : { ...entered, redirect };
    } catch (error) {
      return failed(name, error);
    }
  }

  function providerNamed(name: string): OAuthProvider {
    const provider = providers.get(name);
    if (provider === undefined) throw new Error(`unknown provider ${name}`);
    return provider;
  }

  function failed(provider: string, error: unknown) {
    if (!(error instanceof ProviderFailure)) throw error;
    observe({ kind: 'provider-failed', provider, error });
    return refused(unavailable);
  }

  return { has: (name) => providers.has(name), start, finish };
}

function refused(problem: Problem) {
  return { kind: 'refused', problem } as const;
}

/** RFC 6749 §4.1.2.1 and OpenID Connect Core 1.0 §3.1.2.6. Anyone can write into the URL, so no other word is echoed. */
const reasons: ReadonlySet<string> = new Set([
  'access_denied',
  'account_selection_required',
  'consent_required',
  'interaction_required',
  'invalid_request',
  'invalid_scope',
  'login_required',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
]);

function deniedBy(reason: string): Problem {
  return reasons.has(reason) ? { code: 'sign_in_invalid', context: { reason } } : invalid;
}

/** Builds the authorization request (§5.3.1; RFC 6749 §4.1.1, RFC 7636 §4.3, OpenID Connect Core 1.0 §3.1.2.1). */
function authorizationUrl(
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
    ['code_challenge', hash('sha256', proofs.codeVerifier, 'base64url')],
    ['code_challenge_method', 'S256'],
    ...(provider.kind === 'openid' ? [['nonce', proofs.nonce] as const] : []),
  ];
  for (const [name, value] of parameters) url.searchParams.set(name, value);
  return url.href;
}

/** @throws ProviderFailure if it is not an https URL or on this machine */
function authorizationEndpoint({ as }: ProviderServer): URL {
  const text = as.authorization_endpoint;
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  const isSafe =
    url !== undefined &&
    (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)));
  if (!isSafe) throw new ProviderFailure('discovery: no usable authorization_endpoint');
  return url;
}

/**
 * The cookie that binds a sign-in to its browser (RFC 9700 §4.7.1): a callback made in another browser lacks the secret, so an attacker
 * cannot sign a user in to the attacker's account. Attributes as for the session cookie, but always Lax, because the callback comes
 * from the provider's site. One secret serves all sign-ins of a browser, so that two windows do not disturb each other.
 */
const signInCookieName = '__Host-comity_sign_in';

/** Returns undefined if the cookie is missing or malformed. @param field value of Cookie */
export function readBrowserSecret(field: string | undefined): string | undefined {
  const value = field === undefined ? undefined : readCookie(field, signInCookieName);
  return typeof value === 'string' && isSecret(value) ? value : undefined;
}

function setBrowserSecret(secret: string, seconds: number): readonly string[] {
  const attributes = `Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Lax`;
  return ['Set-Cookie', `${signInCookieName}=${secret}; ${attributes}`];
}
