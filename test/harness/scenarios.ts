/** Tests as a table: the titles, the requests of each in their order, and the answer that each request must have. */
import { test } from 'node:test';
import type { Answer, RequestOptions } from './exchange.ts';
import type { Expectation } from './expected-answer.ts';

/** How a request is sent, and its answer compared with `expect`: `send` of a server, `ask` of a client. */
export type Send = (method: string, path: string, options: RequestOptions) => Promise<Answer>;

/** `'GET /api/v1/notes'`, and what is sent and expected; a function where an earlier answer must be known. */
export type Exchange = readonly [request: string, options: Expecting | (() => Expecting)];

type Expecting = RequestOptions & { readonly expect: Expectation };

/** A test for each row. Rows are run in their order, against the same server. */
export function scenarios(send: Send, rows: Readonly<Record<string, Exchange | readonly Exchange[]>>): void {
  for (const [title, row] of Object.entries(rows)) {
    test(title, async () => {
      for (const [request, options] of isExchange(row) ? [row] : row) {
        const [method = '', path = ''] = request.split(' ');
        await send(method, path, typeof options === 'function' ? options() : options);
      }
    });
  }
}

function isExchange(row: Exchange | readonly Exchange[]): row is Exchange {
  return typeof row[0] === 'string';
}
