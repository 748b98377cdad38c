/**
 * Refusals before any resource is involved (§2.2, §7), in the same two forms: the plain error body, or
 * application/problem+json if Accept prefers it.
 */

import { STATUS_CODES } from 'node:http';
import type { Response } from '../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, problemStatus } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { RequestFields } from '../http/request-fields.ts';
import { preferredMediaType } from '../http/syntax/accept.ts';
import type { Context } from './context.ts';

/** The request, as far as its refusal depends on it. */
type Asked = {
  readonly fields: Pick<RequestFields, 'accept' | 'origin'>;
  readonly context: Pick<Context, 'corsFields'>;
};

const forms = ['application/json', 'application/problem+json'] as const;

export function problemAnswer(
  problem: Problem,
  { fields: { accept, origin }, context }: Asked,
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
    ...context.corsFields(origin),
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

type RawAnswer = { readonly status: number; readonly code: ProblemCode; readonly text: string };

/**
 * A response as octets, for parser errors and CONNECT: node:http has no response object. It ends its connection.
 * @param fields name, value, ... that this refusal demands besides
 */
export function rawAnswer(context: Context, problem: Problem, fields: readonly string[] = []): RawAnswer {
  const status = problemStatus(problem.code);
  const body = problemBody(problem);
  const all = [
    ...['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))],
    ...['Cache-Control', 'no-store', ...fields, ...context.fieldsOfAll],
    ...['Date', context.formatDate(context.clock()), 'Connection', 'close'],
  ];
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
  for (let index = 0; index + 1 < all.length; index += 2) head += `${all[index]}: ${all[index + 1]}\r\n`;
  return { status, code: problem.code, text: `${head}\r\n${body}` };
}
