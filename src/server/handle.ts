/** Passes one request of any protocol to the handler and sends its response, each exactly once. */

import type { Handler, Response } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { StoreUnavailable } from '../store/store.ts';
import { problemAnswer } from './problem-answer.ts';
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
  if (!(error instanceof StoreUnavailable)) context.observe({ kind: 'failed', id, error });
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
