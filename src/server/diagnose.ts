/**
 * What a parser error of node:http means in terms of the error registry (§7). The error carries a code and the octets that
 * were being parsed; the octets are looked at only as far as the method and the request line, and never repeated in full.
 */
import { METHODS } from 'node:http';
import type { Problem } from '../http/problem.ts';
import { isToken } from '../http/syntax/token.ts';

export type ParserError = Error & {
  readonly code?: string;
  readonly reason?: string;
  readonly bytesParsed?: number;
  readonly rawPacket?: Uint8Array;
};

/** Longer than any method, shorter than anything worth repeating. */
const methodBytesMax = 32;

export function diagnose(error: ParserError): Problem {
  switch (error.code) {
    case 'HPE_INVALID_METHOD':
      return methodProblem(error);
    case 'HPE_HEADER_OVERFLOW':
      return { code: overflowsInTarget(error) ? 'target_too_long' : 'fields_too_large' };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { code: 'content_too_large', message: 'chunk extensions are too large' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'request_timeout' };
    case 'HPE_INVALID_VERSION':
      // The parser has the same code for a request line that ends in a bare LF.
      return { code: error.reason === 'Invalid HTTP version' ? 'version_unsupported' : 'message_invalid' };
    case 'HPE_PAUSED_H2_UPGRADE':
      return { code: 'version_unsupported' };
    default:
      return { code: 'message_invalid' };
  }
}

/** A token that is no method we know is 501; what is no token at all is not HTTP. */
function methodProblem(error: ParserError): Problem {
  const method = methodText(error);
  if (method === undefined) return { code: 'message_invalid' };
  const upper = method.toUpperCase();
  if (method === upper || !METHODS.includes(upper)) return { code: 'method_unknown' };
  return { code: 'method_unknown', message: `method not implemented; methods are case-sensitive: ${upper}` };
}

function methodText({ rawPacket, bytesParsed = 0 }: ParserError): string | undefined {
  if (rawPacket === undefined) return undefined;
  // Earlier requests of the same packet end in LF or in content; empty lines before a request are allowed.
  const start = rawPacket.lastIndexOf(0x0a, Math.max(bytesParsed - 1, 0)) + 1;
  const text = Buffer.from(rawPacket.subarray(start, start + methodBytesMax)).toString('latin1');
  const space = text.indexOf(' ');
  const method = space < 0 ? text : text.slice(0, space);
  return isToken(method) ? method : undefined;
}

/**
 * No line ended before the bound was reached, so it was the request line that was too long. Where that line came in
 * several packets this cannot be seen, and the answer is 431, which is no less true.
 */
function overflowsInTarget({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  if (rawPacket === undefined) return false;
  const parsed = rawPacket.subarray(0, Math.max(bytesParsed, 1));
  return !parsed.includes(0x0a) && methodText({ rawPacket, bytesParsed: 0 } as ParserError) !== undefined;
}
