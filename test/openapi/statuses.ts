/** What an operation of a document can end in: the statuses of its own, and the codes behind one of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Item, operation, operationsOf, resolved } from './fixture.ts';

/** Any request may end in one of these, by the message or the server. */
const always = [400, 408, 414, 417, 431, 500, 501, 503, 505];

/** Besides those in which any request may end. */
export type Statuses = readonly (readonly [method: string, path: string, statuses: string])[];

/** A test for each operation. */
export function testStatuses(document: Item, table: Statuses): void {
  for (const [method, path, expected] of table) {
    test(`gives ${method.toUpperCase()} ${path} the statuses ${expected}`, () => {
      assert.equal(statusesOf(document, method, `/api/v1/${path}`).join(' '), expected);
    });
  }
}

/** In the order of the document. */
export function methodsOf(document: Item, path: string): string {
  const found = operationsOf(document).filter((each) => each.path === `/api/v1/${path}`);
  return found.map(({ method }) => method).join(' ');
}

export function statusesOf(document: Item, method: string, path: string): readonly number[] {
  const own = Object.keys(operation(document, method, path).responses as Item).map(Number);
  assert.deepEqual(
    always.filter((status) => !own.includes(status)),
    [],
  );
  return own.filter((status) => !always.includes(status));
}

/** Codes of a status, from the `code` that its body may have. */
export function codesOf(document: Item, method: string, path: string, status: number): readonly string[] {
  const { responses } = operation(document, method, path) as { responses: Record<string, unknown> };
  const { content } = resolved(document, responses[status]) as {
    content: Record<string, { schema: { allOf: readonly Item[] } }>;
  };
  const { code } = (content['application/json']?.schema.allOf[1]?.properties ?? {}) as {
    code: { const?: string; enum?: readonly string[] };
  };
  return code.enum ?? [code.const ?? ''];
}
