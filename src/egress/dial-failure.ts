/** A failure to connect and its stage (§6, §8). The message is for the owner of an endpoint and names no address. */
import type { ExchangeFailure } from './exchange.ts';

export type DialFailureKind = 'refused' | 'dns' | 'connect' | 'tls' | 'timeout';

/** Milliseconds of each stage; null for one that did not begin or end, and for the lookup of a literal address. */
export type DialTiming = {
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
};

export class DialFailure extends Error {
  override readonly name = 'DialFailure';
  /** Never one of undici's own codes, some of which make it retry. */
  readonly code = 'COMITY_DIAL';
  readonly kind: DialFailureKind;

  /** `cause`: the original error, for the operator's log; it may name an address. */
  constructor(kind: DialFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

/** Code of a system or TLS error, such as `ECONNREFUSED`; the empty text without one. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}

export type Failure = { readonly failure: ExchangeFailure; readonly message: string };

/** Messages of undici for invalid answers that have no code of their own. */
const badAnswers: ReadonlySet<string> = new Set(['bad upgrade', 'bad response']);

/** Classifies an error before the header section of the answer (§6, §8), by code only, because its text may name an address. */
export function classifyFailure(error: unknown): Failure {
  if (error instanceof DialFailure) return { failure: error.kind, message: error.message };
  // By name: importing its class would load undici at every start (late-http.ts).
  if (error instanceof Error && error.name === 'HTTPParserError')
    return { failure: 'protocol', message: 'The answer is not HTTP' };
  const code = codeOf(error);
  switch (code) {
    case 'UND_ERR_HEADERS_OVERFLOW':
      return { failure: 'protocol', message: 'The header section of the answer is too long' };
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH':
      return { failure: 'refused', message: 'The request cannot be sent: a field of it is not permitted' };
    case 'UND_ERR_DESTROYED':
    case 'UND_ERR_CLOSED':
    case 'UND_ERR_ABORTED':
      return { failure: 'aborted', message: 'Comity stopped during the attempt' };
    case 'UND_ERR_SOCKET':
      if (error instanceof Error && badAnswers.has(error.message)) {
        return { failure: 'protocol', message: 'The answer does not belong to this request' };
      }
      return { failure: 'reset', message: 'The connection was closed before there was an answer' };
    case 'ERR_HTTP2_ERROR':
    case 'ERR_HTTP2_SESSION_ERROR':
      return { failure: 'protocol', message: `The answer is not HTTP/2 (${code})` };
    default:
      return classifyOthers(code);
  }
}

function classifyOthers(code: string): Failure {
  // A server that asks for a certificate says so only after the handshake (RFC 8446 §4.4.2).
  if (code.startsWith('ERR_SSL_')) return { failure: 'tls', message: `The receiver ended TLS (${code})` };
  const named = code === '' || code.startsWith('UND_ERR_') ? '' : ` (${code})`;
  return { failure: 'reset', message: `The connection broke before there was an answer${named}` };
}
