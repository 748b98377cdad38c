/**
 * TRACE (§4.11; RFC 9110 §9.3.8): returns the request as received, as message/http; over HTTP/2 with a request line
 * made from `:path`. This server forwards TRACE to no other, so it is the last recipient whatever Max-Forwards says,
 * even if that is not a number. Likely secrets are left out by name: fields that carry credentials, and parameters of
 * the target.
 */
import type { Request, Response } from '../../http/message.ts';
import { formatHttpMessage } from '../../http/syntax/http-message.ts';
import type { Ended } from './ended.ts';

/**
 * A field is secret if its name, split at hyphens and underscores, has one of these words: `X-Gitlab-Token`,
 * `Stripe-Signature`, `X-API-Key`.
 */
const secretWords: ReadonlySet<string> = new Set([
  ...[
    'apikey',
    'assertion',
    'auth',
    'authentication',
    'authorization',
    'bearer',
    'cert',
    'cookie',
    'cookie2',
  ],
  ...['credential', 'credentials', 'csrf', 'jwt', 'key', 'passphrase', 'password', 'secret', 'session'],
  ...['sig', 'signature', 'ticket', 'token', 'xsrf'],
  // Its value may be one of our URLs, with one of the parameters below.
  'referer',
]);

const wordEnd = /[-_]/;

/** `api_key` and `ticket` are credentials too (§5.2, §9); the others occur in logins and mails. */
const secretParameters: ReadonlySet<string> = new Set([
  'access_token',
  'api_key',
  'code',
  'state',
  'ticket',
  'token',
]);

export function traceResponse(status: number, ended: Ended): Response {
  return {
    status,
    fields: ['Content-Type', 'message/http', 'Cache-Control', 'no-store'],
    content: traceMessage(ended.request),
  };
}

export function traceMessage(request: Pick<Request, 'method' | 'target' | 'version' | 'rawFields'>): string {
  const { method, target, version, rawFields } = request;
  return formatHttpMessage({
    method,
    target: withoutSecrets(target),
    version: `HTTP/${version}`,
    rawFields,
    withheld: secretNames(rawFields),
  });
}

function secretNames(rawFields: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (let at = 0; at < rawFields.length; at += 2) {
    const name = (rawFields[at] ?? '').toLowerCase();
    if (name.split(wordEnd).some((word) => secretWords.has(word))) names.add(name);
  }
  return names;
}

function withoutSecrets(target: string): string {
  const at = target.indexOf('?');
  if (at < 0) return target;
  const pairs = target.slice(at + 1).split('&');
  const kept = pairs.filter((pair) => !secretParameters.has(decodeName(pair)));
  if (kept.length === pairs.length) return target;
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join('&')}`;
}

function decodeName(pair: string): string {
  const name = (pair.split('=', 1)[0] ?? '').replaceAll('+', ' ');
  try {
    return decodeURIComponent(name);
  } catch {
    // A malformed escape names no parameter.
    return name;
  }
}
