/**
 * What an error of a connection or of undici says about the receiver, as a failure of the exchange (§6, §8). By codes, never by what an
 * error prints: its text may name an address.
 */
import { errors } from 'undici';
import { codeOf, DialFailure } from './dial-failure.ts';
import type { ExchangeFailure } from './exchange.ts';

export type Failure = { readonly failure: ExchangeFailure; readonly message: string };

/** Where both undici and the sender of a bad answer are to be told apart by the text, which has no code of its own. */
const badAnswers: ReadonlySet<string> = new Set(['bad upgrade', 'bad response']);

/** The failure of an exchange that ended with an error before the header section of its answer was there. */
export function classifyFailure(error: unknown): Failure {
  if (error instanceof DialFailure) return { failure: error.kind, message: error.message };
  if (error instanceof errors.HTTPParserError)
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
      return { failure: 'aborted', message: 'The program stopped meanwhile' };
    case 'UND_ERR_SOCKET':
      if (error instanceof Error && badAnswers.has(error.message)) {
        return { failure: 'protocol', message: 'The answer is none to this request' };
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
