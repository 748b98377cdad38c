/**
 * Sign-in by a provider, from its two ends (§5.3): `start` says where the browser goes, `finish` what became of it when it is back. Each
 * step that could be repeated or forged is one file of this folder; here is their order.
 */
import type { OAuthProvider } from '../../config/oauth-providers.ts';
import type { Problem } from '../../http/problem.ts';
import { authorizationEndpoint, authorizationUrl } from './authorization-url.ts';
import { setBrowserSecret } from './browser-cookie.ts';
import { type EnterAccountOptions, type Entered, enterAccount } from './enter-account.ts';
import { ProviderFailure } from './provider-failure.ts';
import { fetchFromProvider, type ProviderFetch } from './provider-fetch.ts';
import { createProviderServers } from './provider-server.ts';
import { redeemCode } from './redeem-code.ts';
import { createSignIns, isSecret, type SignIn } from './sign-ins.ts';

export type OAuthOptions = EnterAccountOptions & {
  readonly providers: ReadonlyMap<string, OAuthProvider>;
  readonly random: (count: number) => Buffer;
  /** Where providers lead back to: the path of this server that ends in `/{provider}/callback`, with its origin. */
  readonly callbackUrl: (provider: string) => string;
  readonly signInSeconds: number;
  readonly issuerTimeoutMs: number;
  /** Replaced in tests alone. */
  readonly fetch?: ProviderFetch;
};

export type Start = SignIn & {
  /** What the browser keeps already; undefined: nothing good. */
  readonly browser: string | undefined;
};

export type Started =
  | { readonly kind: 'started'; readonly location: string; readonly fields: readonly string[] }
  | { readonly kind: 'refused'; readonly problem: Problem };

export type Finish = {
  readonly provider: string;
  /** The query of the callback, each name once. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly browser: string | undefined;
  /** That failed sign-ins are told of by. */
  readonly address: string;
};

export type Finished = Exclude<Entered, { kind: 'refused' }> & { readonly redirect: string | null };

export type OAuth = {
  readonly has: (provider: string) => boolean;
  /** Begins a sign-in at a provider that is there. */
  start(start: Start): Promise<Started>;
  /** Ends it, well or not: no callback counts twice. */
  finish(finish: Finish): Promise<Finished | { readonly kind: 'refused'; readonly problem: Problem }>;
};

const secretBytes = 32;
const unavailable: Problem = { code: 'provider_unavailable' };
const invalid: Problem = { code: 'sign_in_invalid' };

export function createOAuth(options: OAuthOptions): OAuth {
  const { providers, random, signInSeconds, issuerTimeoutMs, callbackUrl, observe } = options;
  const { fetch = fetchFromProvider } = options;
  const signIns = createSignIns(options);
  const servers = createProviderServers({ fetch, clock: options.clock, issuerTimeoutMs });

  async function start({ browser, ...signIn }: Start): Promise<Started> {
    const provider = providerNamed(signIn.provider);
    const secret = browser ?? random(secretBytes).toString('base64url');
    try {
      // Before anything is stored: a provider that is away leaves no traces.
      const server = await servers(provider);
      const endpoint = authorizationEndpoint(server);
      const proofs = await signIns.begin(signIn, secret);
      const location = authorizationUrl(endpoint, server, proofs, callbackUrl(provider.name));
      return { kind: 'started', location, fields: setBrowserSecret(secret, signInSeconds) };
    } catch (error) {
      return failed(provider.name, error);
    }
  }

  async function finish({ provider: name, parameters, browser, address }: Finish) {
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
        fetch,
        timeoutMs: issuerTimeoutMs,
      });
      if (identity === undefined) return refused(invalid);
      const { link, redirect } = signIn;
      const arrival = { provider: name, link, identity, cookie: redirect !== null, address };
      const entered = await enterAccount(options, arrival);
      return entered.kind === 'refused' ? entered : { ...entered, redirect };
    } catch (error) {
      return failed(name, error);
    }
  }

  function providerNamed(name: string): OAuthProvider {
    const provider = providers.get(name);
    if (provider === undefined) throw new Error(`there is no provider ${name}`);
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

/** RFC 6749 §4.1.2.1 and OpenID Connect Core 1.0 §3.1.2.6. Anybody can write into the URL, so no other word is repeated. */
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
