/** What an operation of a document can end in: the statuses of its own, and the codes behind one of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorsOf, type Item, operation, operationsOf, responsesOf } from './fixture.ts';

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
  const item = operation(document, method, path);
  const made = responsesOf(document, item).map(([status]) => Number(status));
  const all = [...new Set([...made, ...errorsOf(document, item).keys()])].sort((one, other) => one - other);
  assert.deepEqual(
    always.filter((status) => !all.includes(status)),
    [],
  );
  return all.filter((status) => !always.includes(status));
}

/** Codes of a status. */
export function codesOf(document: Item, method: string, path: string, status: number): readonly string[] {
  return errorsOf(document, operation(document, method, path)).get(status) ?? [];
}
