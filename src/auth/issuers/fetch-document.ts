/**
 * A JSON document of an issuer: over TLS unless it is on this machine, bounded in time and octets, without redirects, without a trace
 * of the token that made us ask.
 */
import { isPrivateLine, readBounded } from '../bounded-answer.ts';

/** As `fetch` of the platform. */
export type IssuerFetch = (
  url: string,
  options: {
    readonly headers: Record<string, string>;
    readonly signal: AbortSignal;
    readonly redirect: 'manual';
  },
) => Promise<Response>;

export async function fetchDocument(fetch: IssuerFetch, url: string, signal: AbortSignal): Promise<unknown> {
  if (!isPrivateLine(url)) throw new Error('the issuer names an address without TLS');
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const response = await fetch(url, { headers, signal, redirect: 'manual' });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer answers ${response.status}`);
  }
  const bytes = await readBounded(response);
  if (bytes === undefined) throw new Error('the answer of the issuer is too long');
  return JSON.parse(new TextDecoder().decode(bytes));
}
