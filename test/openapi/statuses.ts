/** What an operation of a document can end in: the statuses of its own, and the codes behind one of them. */
import assert from 'node:assert/strict';
import { type Item, operation, resolved } from './fixture.ts';

/** Any request may end in one of these, by the message or the server. */
const always = [400, 408, 414, 417, 431, 500, 501, 503, 505];

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
