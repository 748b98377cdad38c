/** Passes one request of any protocol to the handler and sends its response, each exactly once; and refusals that no resource makes. */

import { STATUS_CODES } from 'node:http';
import type { Handler, Response } from '../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, problemStatus } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { RequestFields } from '../http/request-fields.ts';
import { withVaryOnce } from '../http/response-fields.ts';
import { preferredMediaType } from '../http/syntax/accept.ts';
import { StoreUnavailable } from '../store/store.ts';
import type { Context } from './context.ts';
import type { RequestUnderWay } from './request-under-way.ts';

/** Logged only: the client has left. */
const clientGone = 499;

/** Hands a request to the handler in its turn of the event loop; a probe goes before those that wait. */
export function handleInTurn(request: RequestUnderWay): void {
  const { turns, probes } = request.context;
  if (probes.has(request.target)) turns.takeProbe(() => handle(request));
  else turns.take(() => handle(request));
}

export function handle(request: RequestUnderWay, handler: Handler = request.context.handler): void {
  // While the request waited for its turn: hundreds that came at once and left would otherwise be worked on in vain.
  if (request.isGone) {
    request.settle({ status: clientGone, route: request.context.routeOf(request) ?? 'none' });
    return;
  }
  let response: Response | Promise<Response>;
  try {
    response = handler(request);
  } catch (error) {
    fail(request, error);
    return;
  }
  if (response instanceof Promise) {
    response.then(
      (settled) => deliverInTurn(request, settled),
      (error: unknown) => fail(request, error),
    );
  } else deliver(request, response);
}

/** Octets of text above which a response is sent in a turn of its own: 15 of 8 MB that settled together held the event loop for 300 ms. */
const turnlessTextMax = 256 * 1024;

function deliverInTurn(request: RequestUnderWay, response: Response): void {
  const { content } = response;
  const isLong = typeof content === 'string' && content.length > turnlessTextMax;
  const turn = isLong ? request.context.turns.nextOfBegun() : undefined;
  if (turn === undefined) deliver(request, response);
  else void turn.then(() => deliver(request, response));
}

export function deliver(request: RequestUnderWay, response: Response): void {
  try {
    request.send(response);
  } catch (error) {
    fail(request, error);
  }
}

function unavailableProblem({ fault }: StoreUnavailable): Problem {
  return fault === undefined ? { code: 'unavailable' } : { code: 'unavailable', context: { reason: fault } };
}

/** Handles a failure of the handler, or a response that cannot be sent. */
export function fail(request: RequestUnderWay, error: unknown): void {
  const { context, id } = request;
  if (!(error instanceof StoreUnavailable))
    context.observe({ kind: 'failed', id, traceId: request.traceId, error });
  const { sentStatus } = request;
  // The walk, which knows the route, ended without a response.
  const route = context.routeOf(request) ?? 'none';
  if (sentStatus !== undefined) {
    request.cut();
    request.settle({ status: sentStatus, route });
    return;
  }
  const response =
    error instanceof StoreUnavailable
      ? problemAnswer(unavailableProblem(error), request, {
          retryAfterSeconds: Math.ceil(error.retryAfterSeconds),
        })
      : problemAnswer({ code: 'internal', context: { requestId: id } }, request);
  request.send({ ...response, route });
}

// Refusals before any resource is involved (§2.2, §7), in the same two forms: the plain error body, or
// application/problem+json if Accept prefers it.
//

/** The request, as far as its refusal depends on it. */
type Asked = {
  readonly fields: Pick<RequestFields, 'accept' | 'origin'>;
  readonly context: Pick<Context, 'corsFields' | 'root'>;
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
    fields: withVaryOnce(fields),
    content: details ? problemDetailsBody(problem, context.root) : problemBody(problem),
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
