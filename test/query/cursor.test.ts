import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';
import { type CursorPlace, openCursor, sealCursor } from '../../src/resources/query/cursor.ts';

const mac = (text: string) => hash('sha256', `key\n${text}`, 'base64url').slice(0, 22);
const shape = 'products ["price","id"]*always';

const places: readonly CursorPlace[] = [
  { key: ['a'], direction: 'after' },
  { key: [null, 1.5, true, 'é😀"\n', ''], direction: 'before' },
  { key: [], direction: 'after', page: 7 },
];

describe('a cursor', () => {
  for (const place of places) {
    test(`gives back ${JSON.stringify(place)}`, () => {
      const cursor = sealCursor(mac, { shape, ...place });
      assert.match(cursor, /^[A-Za-z0-9_-]+$/);
      assert.deepEqual(openCursor(mac, shape, cursor), place);
    });
  }

  const cursor = sealCursor(mac, { shape, key: ['Lamp', 10], direction: 'after' });

  test('is refused when any one character is another', () => {
    for (let at = 0; at < cursor.length; at += 1) {
      const other = cursor.charAt(at) === 'x' ? 'y' : 'x';
      const altered = cursor.slice(0, at) + other + cursor.slice(at + 1);
      assert.equal(openCursor(mac, shape, altered), undefined, altered);
    }
  });

  test('is refused when it is cut or lengthened', () => {
    for (let at = 0; at < cursor.length; at += 1) {
      assert.equal(openCursor(mac, shape, cursor.slice(0, at)), undefined);
    }
    for (const more of ['A', '=', ' ', '.']) assert.equal(openCursor(mac, shape, cursor + more), undefined);
  });

  test('is refused for another query', () => {
    assert.equal(openCursor(mac, `${shape}2`, cursor), undefined);
  });

  test('is refused under another key', () => {
    const other = (text: string) => hash('sha256', `other\n${text}`, 'base64url').slice(0, 22);
    assert.equal(openCursor(other, shape, cursor), undefined);
  });

  test('is refused when what was sealed is no place', () => {
    const loose = () => '';
    for (const text of ['', '{}', '[1]', '["1",0]', '[1,0,{}]', '[1,0,[1]]', 'nonsense']) {
      assert.equal(openCursor(loose, shape, `A${Buffer.from(text).toString('base64url')}`), undefined, text);
    }
  });

  test('is not written with a MAC that is too long to carry', () => {
    const long = () => 'x'.repeat(64);
    assert.throws(() => sealCursor(long, { shape, key: [], direction: 'after' }), RangeError);
  });
});
