/**
 * Asks the real program and holds its answer to the document: the status, every header field, the media type and the content. HEAD is
 * judged by GET; OPTIONS and TRACE, which the document says in words, are not.
 */
import assert from 'node:assert/strict';
import type { Answer, RequestOptions } from '../harness/exchange.ts';
import type { RunningServer } from '../harness/running-server.ts';
import { errorsOf, faults, type Item, operationsOf, resolved } from './fixture.ts';

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
      if (method === 'OPTIONS' || method === 'TRACE') return answer;
      const path = target.split('?', 1)[0] ?? '';
      const described = method === 'HEAD' ? 'GET' : method;
      const found = patterns.find((pattern) => pattern.method === described && pattern.expression.test(path));
      assert(found, `${method} ${path} is not in the document`);
      check(document, found.item, { method, target, options }, answer);
      seen.add(`${method} ${String(found.item.operationId)} ${answer.status}`);
      return answer;
    },
  };
}

type Asked = { readonly method: string; readonly target: string; readonly options: RequestOptions };

function check(document: Item, operation: Item, { method, target, options }: Asked, answer: Answer): void {
  const place = `${method} ${target} ${answer.status} ${answer.body.slice(0, 200)}`;
  const { headers = {}, content = {} } = promisedResponse(document, operation, options, answer, place);
  const listed = new Set(
    [headers, document['x-headers'] as Item].flatMap((fields) =>
      Object.keys(fields).map((name) => name.toLowerCase()),
    ),
  );
  for (const name of Object.keys(answer.headers))
    assert(listed.has(name) || unlisted.has(name), `${place}: ${name}`);
  const type = answer.headers['content-type']?.split(';', 1)[0];
  if (answer.body === '' && method !== 'QUERY') return;
  assert(type !== undefined && type in content, `${place}: ${type} is not in the document`);
  // With `fields`, a representation has the selected members alone.
  if (!type.endsWith('json') || /[?&]fields=/.test(target)) return;
  assert.deepEqual(faults(document, (content[type] as Item).schema, answer.json()), [], place);
}

type Response = { readonly headers?: Item; readonly content?: Record<string, Item> };

/** The response of any request, or that of a field which the request has. */
function promisedResponse(
  document: Item,
  operation: Item,
  { headers = {} }: RequestOptions,
  { status, json, body }: Answer,
  place: string,
): Response {
  const responses = operation.responses as Record<string, unknown>;
  if (status >= 400) {
    const codes = errorsOf(document, operation).get(status) ?? [];
    if (body !== '') assert(codes.includes(json().code), `${place}: ${json().code} is not in the document`);
    else assert(codes.length > 0, `${place}: no such status in the document`);
    return resolved(document, responses.default) as Response;
  }
  const fields = Object.entries((operation['x-responses'] ?? {}) as Record<string, Item>);
  const asked = fields.find(([field, found]) => {
    const [name = '', value = ''] = field.split(': ');
    return String((headers as Item)[name] ?? '').includes(value) && String(status) in found;
  });
  const response = asked?.[1][status] ?? responses[status];
  assert(response, `${place}: no such status in the document`);
  return resolved(document, response) as Response;
}
