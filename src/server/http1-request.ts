/** A request over HTTP/1.1 (RFC 9112), as those see it who write its answer: with the two objects that node:http has for it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestUnderWay } from './request-under-way.ts';

export type Http1Request = RequestUnderWay & {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
};
