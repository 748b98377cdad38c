/**
 * Asks the real program and holds its answer to the document: the status, every header field, the media type and the content.
 */
import assert from 'node:assert/strict';
import type { Answer, RequestOptions } from '../harness/exchange.ts';
import type { RunningServer } from '../harness/running-server.ts';
import { faults, type Item, operationsOf, resolved } from './fixture.ts';

/** HTTP's own, which OpenAPI leaves out. */
const unlisted = new Set([
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
]);

export type Promised = {
  /** Fails where the document does not have what comes. */
  ask(method: string, target: string, options?: RequestOptions): Promise<Answer>;
  /** Operation id and status of every answer so far. */
  readonly seen: ReadonlySet<string>;
};

export function promisedBy(document: Item, program: Pick<RunningServer, 'send'>): Promised {
  const patterns = operationsOf(document).map(({ path, method, item }) => ({
    method: method.toUpperCase(),
    // A literal segment comes before one that is captured, as in the router.
    captures: path.split('{').length,
    expression: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`),
    item,
  }));
  patterns.sort((one, other) => one.captures - other.captures);
  const seen = new Set<string>();
  return {
    seen,
    async ask(method, target, options = {}) {
      const answer = await program.send(method, target, options);
      const path = target.split('?', 1)[0] ?? '';
      const found = patterns.find((pattern) => pattern.method === method && pattern.expression.test(path));
      assert(found, `${method} ${path} is not in the document`);
      check(document, found.item, `${method} ${target}`, answer);
      seen.add(`${String(found.item.operationId)} ${answer.status}`);
      return answer;
    },
  };
}

function check(document: Item, operation: Item, asked: string, answer: Answer): void {
  const place = `${asked} ${answer.status} ${answer.body.slice(0, 200)}`;
  const response = (operation.responses as Record<string, unknown>)[answer.status];
  assert(response, `${place}: no such status in the document`);
  const { headers = {}, content = {} } = resolved(document, response) as {
    headers?: Item;
    content?: Record<string, Item>;
  };
  const listed = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  for (const name of Object.keys(answer.headers))
    assert(listed.has(name) || unlisted.has(name), `${place}: ${name}`);
  const type = answer.headers['content-type']?.split(';', 1)[0];
  if (answer.body === '' && !asked.startsWith('QUERY')) return;
  assert(type !== undefined && type in content, `${place}: ${type} is not in the document`);
  if (type.endsWith('json')) {
    assert.deepEqual(faults(document, (content[type] as Item).schema, answer.json()), [], place);
  }
}
