/**
 * The `message/http` content of a TRACE response (§4.11; RFC 9110 §9.3.8, RFC 9112 §2.1 and §10.1): the request line and the fields as
 * received; over HTTP/2 with a request line made from `:path`. A TRACE has no content, so the message ends with the empty line. This server
 * forwards TRACE to no other, so it is the last recipient whatever Max-Forwards says, even if that is not a number. Likely secrets are left
 * out by name: fields that carry credentials, and parameters of the target.
 */
import { isToken } from './field-value.ts';

/** A received request: `rawFields` is flat (name, value, name, value), `withheld` has lower-case names. */
type ReceivedMessage = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly rawFields: readonly string[];
  readonly withheld: ReadonlySet<string>;
};

/** The request as received without its likely secrets. @param version `1.1` */
export function traceMessage(request: Omit<ReceivedMessage, 'withheld'>): string {
  const { target, version, rawFields } = request;
  return formatHttpMessage({
    ...request,
    target: withoutSecrets(target),
    version: `HTTP/${version}`,
    withheld: secretNames(rawFields),
  });
}

/** Writes the message, without withheld fields, pseudo-fields of HTTP/2 and others whose name is not a token. */
export function formatHttpMessage(message: ReceivedMessage): string {
  const { method, target, version, rawFields, withheld } = message;
  let text = `${withoutBreaks(method)} ${withoutBreaks(target)} ${withoutBreaks(version)}\r\n`;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    if (!isToken(name) || withheld.has(name.toLowerCase())) continue;
    text += `${name}: ${withoutBreaks(rawFields[at + 1] ?? '')}\r\n`;
  }
  return `${text}\r\n`;
}

/** RFC 9110 §5.5: CR, LF and NUL become a space, so that one field cannot be read as two. */
function withoutBreaks(text: string): string {
  if (!text.includes('\r') && !text.includes('\n') && !text.includes('\0')) return text;
  return text.replaceAll('\r', ' ').replaceAll('\n', ' ').replaceAll('\0', ' ');
}

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
