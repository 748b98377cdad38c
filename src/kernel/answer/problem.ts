/**
 * Refusals (§2.2, §7): the plain error body, or application/problem+json (RFC 9457) if Accept prefers it, with the
 * fields that the status requires: Allow with 405, WWW-Authenticate with 401, the accepted types or codings with 415,
 * the current ETag with 412, Retry-After with 429 and 503.
 */
import type { Response } from '../../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, statusOf } from '../../http/problem.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import { preferredMediaType } from '../../http/syntax/accept.ts';
import { readWebSocketHandshake } from '../../http/syntax/websocket-handshake.ts';
import { contentCodings } from '../content/decode-content.ts';
import { entityTag } from '../preconditions.ts';
import type { WalkContext } from '../walk-context.ts';
import type { Ended } from './ended.ts';
import { allowedMethods, contentFields } from './options-response.ts';

/** Seconds after which a refused client may retry. */
const retryAfterSeconds = 1;

export function problemResponse(context: WalkContext, code: ProblemCode, ended: Ended): Response {
  const problem = describe(code, ended);
  const details =
    preferredMediaType(ended.request.fields.accept, ['application/json', 'application/problem+json']) ===
    'application/problem+json';
  return {
    status: statusOf(problem),
    fields: [
      'Content-Type',
      details ? 'application/problem+json' : 'application/json',
      'Cache-Control',
      'no-store',
      'Vary',
      'Accept',
      ...demandedFields(context, problem, ended),
    ],
    content: details ? problemDetailsBody(problem) : problemBody(problem),
    close: code === 'content_too_large' || code === 'request_timeout' || code === 'transfer_coding_unknown',
    code: problem.own?.code ?? code,
  };
}

/** The problem that a stage named, if it has this code; otherwise one with details to correct the request. */
function describe(code: ProblemCode, ended: Ended): Problem {
  const { problem, reading, request } = ended;
  if (problem !== undefined && problem.code === code) return problem;
  if (code === 'field_invalid') {
    const message = reading.fieldComplaint ?? 'Idempotency-Key must be a string of 1 to 255 characters';
    return { code, message };
  }
  if (code === 'handshake_invalid') {
    const handshake = readWebSocketHandshake(request);
    return handshake.kind === 'malformed' ? { code, message: handshake.complaint } : { code };
  }
  if (code === 'method_unknown' && request.method !== request.method.toUpperCase()) {
    return {
      code,
      message: `method not implemented; methods are case-sensitive: ${request.method.toUpperCase()}`,
    };
  }
  return { code };
}

function demandedFields(context: WalkContext, problem: Problem, ended: Ended): readonly string[] {
  const { code } = problem;
  switch (statusOf(problem)) {
    case 401:
      return ['WWW-Authenticate', context.challengesFor(code)];
    case 405:
      return ['Allow', allowedMethods(ended).join(', ')];
    case 412: {
      const tag = ended.validators?.tag ?? null;
      return tag === null ? [] : ['ETag', entityTag(tag, 'identity')];
    }
    case 415:
      return code === 'content_coding_unsupported'
        ? ['Accept-Encoding', contentCodings.join(', ')]
        : contentFields(ended, ended.request.method);
    case 429:
      return ['Retry-After', String(ended.allowance?.retryAfterSeconds ?? retryAfterSeconds)];
    case 503:
      return ['Retry-After', String(retryAfterSeconds)];
    case 426:
      return ['Upgrade', 'websocket', 'Connection', 'Upgrade'];
    default:
      // RFC 6455 §4.4: the supported version.
      if (code === 'handshake_invalid') return ['Sec-WebSocket-Version', '13'];
      if (code === 'idempotency_key_in_use') return ['Retry-After', String(retryAfterSeconds)];
      if (code === 'idempotency_result_sealed')
        return ['Location', String(ended.problem?.context?.location ?? '')];
      return [];
  }
}
