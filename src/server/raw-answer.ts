/**
 * An answer as octets, for where node:http has no response object to write it with: parser errors and CONNECT. Always the
 * last one on its connection.
 */
import { STATUS_CODES } from 'node:http';
import { type Problem, problemBody, problemStatus } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Context } from './context.ts';

export type RawAnswer = { readonly status: number; readonly code: ProblemCode; readonly text: string };

/** @param fields name, value, ... that this refusal demands besides */
export function rawAnswer(context: Context, problem: Problem, fields: readonly string[] = []): RawAnswer {
  const status = problemStatus(problem.code);
  const body = problemBody(problem);
  const all = [
    ...['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))],
    ...['Cache-Control', 'no-store', ...fields, 'API-Version', context.apiVersion],
    ...['Date', context.formatDate(context.clock()), 'Connection', 'close'],
  ];
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
  for (let index = 0; index + 1 < all.length; index += 2) head += `${all[index]}: ${all[index + 1]}\r\n`;
  return { status, code: problem.code, text: `${head}\r\n${body}` };
}
