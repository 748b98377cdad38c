/**
 * Refusals of this layer as responses: those that no resource is asked about (§2.2, §7). The same two forms as
 * everywhere: the plain error body, or application/problem+json where Accept prefers it.
 */
import type { Response } from '../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, problemStatus } from '../http/problem.ts';
import { preferredMediaType } from '../http/syntax/accept.ts';

const forms = ['application/json', 'application/problem+json'] as const;

export function problemAnswer(
  problem: Problem,
  accept: string | undefined,
  options: { close?: boolean; retryAfterSeconds?: number } = {},
): Response {
  const details = accept !== undefined && preferredMediaType(accept, forms) === 'application/problem+json';
  const fields = [
    'Content-Type',
    details ? forms[1] : forms[0],
    'Cache-Control',
    'no-store',
    'Vary',
    'Accept',
  ];
  if (options.retryAfterSeconds !== undefined) fields.push('Retry-After', String(options.retryAfterSeconds));
  return {
    status: problemStatus(problem.code),
    fields,
    content: details ? problemDetailsBody(problem) : problemBody(problem),
    close: options.close ?? false,
    code: problem.code,
  };
}
