/**
 * Where the browser is led to at the provider (§5.3 step 1; RFC 6749 §4.1.1, RFC 7636 §4.3, OpenID Connect Core 1.0 §3.1.2.1).
 */
import { hash } from 'node:crypto';
import { isLoopbackHost } from '../../config/oauth-providers.ts';
import { ProviderFailure } from './provider-failure.ts';
import type { ProviderServer } from './provider-server.ts';
import type { Proofs } from './sign-ins.ts';

/** @param endpoint of `authorizationEndpoint` */
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
    ['code_challenge', hash('sha256', proofs.codeVerifier, 'base64url')],
    ['code_challenge_method', 'S256'],
    ...(provider.kind === 'openid' ? [['nonce', proofs.nonce] as const] : []),
  ];
  for (const [name, value] of parameters) url.searchParams.set(name, value);
  return url.href;
}

/** @throws ProviderFailure where it is none that a browser may be led to */
export function authorizationEndpoint({ as }: ProviderServer): URL {
  const text = as.authorization_endpoint;
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  const isSafe =
    url !== undefined &&
    (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)));
  if (!isSafe) throw new ProviderFailure('discovery: no usable authorization_endpoint');
  return url;
}
