/**
 * The provider as oauth4webapi sees it: its endpoints, discovered where it is one of OpenID Connect, and how this client makes itself
 * known to it. A discovery is asked for once and kept for an hour; with it the library keeps the provider's keys.
 */
import {
  type AuthorizationServer,
  allowInsecureRequests,
  type Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  discoveryRequest,
  processDiscoveryResponse,
} from 'oauth4webapi';
import type { OAuthProvider, OpenIdProvider } from '../../config/oauth-providers.ts';
import { providerFailure } from './provider-failure.ts';
import type { ProviderFetch } from './provider-fetch.ts';

export type ProviderServer = {
  readonly provider: OAuthProvider;
  readonly as: AuthorizationServer;
  readonly client: Client;
  readonly clientAuth: ClientAuth;
};

export type ProviderServers = (provider: OAuthProvider) => Promise<ProviderServer>;

export type ProviderServersOptions = {
  readonly fetch: ProviderFetch;
  readonly clock: () => number;
  readonly issuerTimeoutMs: number;
};

const discoveryMs = 3_600_000;

type Kept = { readonly until: number; readonly server: Promise<ProviderServer> };

/** What comes rejects with `ProviderFailure`. */
export function createProviderServers(options: ProviderServersOptions): ProviderServers {
  const { clock } = options;
  const kept = new Map<string, Kept>();

  return (provider) => {
    const known = kept.get(provider.name);
    if (known !== undefined && clock() < known.until) return known.server;
    const server = serverOf(provider, options);
    const entry = { until: clock() + discoveryMs, server };
    kept.set(provider.name, entry);
    // The next sign-in asks again.
    server.catch(() => kept.get(provider.name) === entry && kept.delete(provider.name));
    return server;
  };
}

/** What every request to the provider carries. The fetch refuses clear text beyond this machine by itself. */
export function requestOptions(fetch: ProviderFetch, signal: AbortSignal) {
  return { [customFetch]: fetch, [allowInsecureRequests]: true, signal };
}

async function serverOf(provider: OAuthProvider, options: ProviderServersOptions): Promise<ProviderServer> {
  const client = { client_id: provider.clientId };
  if (provider.kind === 'openid') {
    const as = await discover(provider, options);
    return { provider, as, client, clientAuth: clientAuthOf(provider, as) };
  }
  const { authorizationUrl, tokenUrl, userinfoUrl } = provider;
  const as = {
    // Without discovery the provider has no issuer; the library wants one and compares it with nothing then.
    issuer: userinfoUrl,
    authorization_endpoint: authorizationUrl,
    token_endpoint: tokenUrl,
    userinfo_endpoint: userinfoUrl,
  };
  return { provider, as, client, clientAuth: ClientSecretPost(provider.clientSecret) };
}

async function discover(
  provider: OpenIdProvider,
  { fetch, issuerTimeoutMs }: ProviderServersOptions,
): Promise<AuthorizationServer> {
  const issuer = new URL(provider.issuer);
  try {
    const response = await discoveryRequest(
      issuer,
      requestOptions(fetch, AbortSignal.timeout(issuerTimeoutMs)),
    );
    return await processDiscoveryResponse(issuer, response);
  } catch (error) {
    throw providerFailure(error, 'discovery');
  }
}

/** OpenID Connect Discovery 1.0 §3: `client_secret_basic` where nothing is said. */
function clientAuthOf(provider: OpenIdProvider, as: AuthorizationServer): ClientAuth {
  const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic')
    ? ClientSecretBasic(provider.clientSecret)
    : ClientSecretPost(provider.clientSecret);
}
