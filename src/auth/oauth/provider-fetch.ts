/**
 * Requests to providers, bounded in octets (time is bounded by the signal of each) and never in the clear beyond this machine, whatever
 * a discovery document names. Redirects are not followed: neither OAuth nor OpenID Connect answers with one.
 */
import type { ProtectedResourceRequestBody } from 'oauth4webapi';
import { isPrivateLine, readBounded } from '../bounded-answer.ts';
import { ProviderFailure } from './provider-failure.ts';

export type ProviderFetch = (url: string, options: ProviderRequest) => Promise<Response>;

export type ProviderRequest = {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: ProtectedResourceRequestBody;
  readonly signal?: AbortSignal | undefined;
};

/** Resolves with the whole answer at hand. */
export async function fetchFromProvider(url: string, options: ProviderRequest): Promise<Response> {
  if (!isPrivateLine(url)) throw new ProviderFailure('the provider names an address without TLS');
  const { method, headers, body = null, signal = null } = options;
  // Forms alone are sent; the library's type allows for more.
  const content = body === null ? null : String(body);
  const response = await fetch(url, { method, headers, body: content, signal, redirect: 'manual' });
  const bytes = await readBounded(response);
  if (bytes === undefined) throw new ProviderFailure('the answer of the provider is too long');
  return new Response(bytes.length === 0 ? null : bytes, {
    status: response.status,
    headers: response.headers,
  });
}
