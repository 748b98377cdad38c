/** What the examples of the documentation may differ in from one run to the next, and what not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OutputComparison } from './compare-output.ts';

const id = '01m7yraxk8cyyqa96vp7dt2zty';
const other = '01m7yraxhnap7w6cpk5bf1p79n';
const third = '01m7ysh0h35r0yqbf3pk42nhra';

const shown = `HTTP/1.1 200 OK
ETag: "3"
Comity-Trace: ... acceptable stream_asked

{ "id": "${id}", "price": 1 }
`;

const printed = (change: (text: string) => string = (text) => text) =>
  change(
    `HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 09:52:24 GMT\r\nETag: "7"\r\nComity-Trace: method_known acceptable stream_asked\r\n\r\n{"id":"${other}","price":1}`,
  );

test('accepts other ids, revisions, times and header fields that are not shown', () => {
  new OutputComparison().compare('http', shown, printed());
});

test('refuses another status, a missing field, another value, and a member more or less', () => {
  const changes: readonly (readonly [string, string])[] = [
    ['200 OK', '201 Created'],
    ['ETag: "7"\r\n', ''],
    ['ETag: "7"', 'ETag: W/"7"'],
    ['stream_asked', 'elsewhere'],
    ['"price":1', '"price":2'],
    ['"price":1', '"price":1,"stock":2'],
    [',"price":1', ''],
  ];
  for (const [from, to] of changes) {
    const text = printed((whole) => whole.replace(from, to));
    assert.throws(() => new OutputComparison().compare('http', shown, text), assert.AssertionError, to);
  }
});

test('wants the same id wherever the page shows the same one, and another where another', () => {
  const comparison = new OutputComparison();
  comparison.compare('text', id, other);
  comparison.compare('text', `${id} ${third}`, `${other} ${id}`);
  assert.throws(() => comparison.compare('text', id, third), assert.AssertionError);
  assert.throws(() => comparison.compare('text', third, other), assert.AssertionError);
});

test('takes "..." for any lines, and wants all others', () => {
  const comparison = new OutputComparison();
  comparison.compare('text', 'a\n...\nd\n', 'a\nb\nc\nd\n');
  assert.throws(() => comparison.compare('text', 'a\n...\nd\n', 'a\nb\nc\n'), assert.AssertionError);
  assert.throws(() => comparison.compare('text', 'a\nb\n', 'a\nb\nc\n'), assert.AssertionError);
});
