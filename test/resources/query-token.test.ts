/** Tokens of queries (§4.9.3): a short query is contained in its token, encrypted; another text opens to nothing. */
import assert from 'node:assert/strict';
import { createCipheriv, hash } from 'node:crypto';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { createQueryTokens } from '../../src/resources/collection/stored-queries.ts';

const macWith = (secret: string) => (text: string) =>
  hash('sha256', `${secret}\n${text}\n${secret}`, 'base64url').slice(0, 22);
const tokens = createQueryTokens(macWith('secret'), 8000);

const query = (text: string) => ({ collection: 'things', mediaType: 'application/json', text });

suite('the token of a query', () => {
  test('contains a short query, whatever its characters', () => {
    const texts = fc
      .string({ unit: 'grapheme', maxLength: 256 })
      .filter((text) => Buffer.byteLength(text) <= 256);
    fc.assert(
      fc.property(texts, (text) => {
        const token = tokens.of(query(text));
        assert.match(token, /^[\w-]{23,}$/);
        assert.deepEqual(tokens.open(token), query(text));
        assert.equal(tokens.of(query(text)), token);
      }),
    );
  });

  test('is encrypted in counter mode, so that earlier URIs keep their meaning', () => {
    // With the last MAC the counter starts again from 0 within the text.
    for (const mac of ['AAAAAAAAAAAAAAAAAAAAAA', 'cvFmZhGuk90vG8FyT_vgsQ', '_____________________w']) {
      const key = hash('sha256', `${mac}${mac}`, 'buffer');
      const cipher = createCipheriv('aes-256-ctr', key, Buffer.from(mac, 'base64url'));
      const text = '{"limit":1}'.padEnd(256);
      const sealed = cipher.update(`things\napplication/json\n${text}`).toString('base64url');
      assert.equal(createQueryTokens(() => mac, 8000).of(query(text)), `${mac}${sealed}`);
    }
  });

  test('is only a MAC for a longer one', () => {
    assert.equal(tokens.isSealed(tokens.of(query('x'.repeat(256)))), true);
    for (const text of ['x'.repeat(257), 'é'.repeat(129)]) {
      const token = tokens.of(query(text));
      assert.match(token, /^[\w-]{22}$/);
      assert.equal(tokens.isSealed(token), false);
      assert.equal(tokens.open(token), undefined);
    }
  });

  test('stays far below the longest target', () => {
    const narrow = createQueryTokens(macWith('secret'), 256);
    assert.equal(narrow.isSealed(narrow.of(query('x'.repeat(16)))), true);
    assert.equal(narrow.isSealed(narrow.of(query('x'.repeat(17)))), false);
  });

  test('shows nothing of the query, and has nothing in common with that of another', () => {
    const [one, other] = [tokens.of(query('{"limit":1}')), tokens.of(query('{"limit":2}'))];
    for (const token of [one, other]) {
      assert.ok(!Buffer.from(token.slice(22), 'base64url').toString('latin1').includes('limit'));
    }
    assert.notEqual(one.slice(0, 8), other.slice(0, 8));
    assert.notEqual(one.slice(22, 30), other.slice(22, 30));
  });

  test('opens to nothing if a character of it is changed, it is cut, or another secret wrote it', () => {
    const token = tokens.of(query('{"limit":1}'));
    // The last character of each part has bits that no octet needs.
    for (let at = 0; at < token.length - 1; at += 1) {
      const changed = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
      assert.equal(tokens.open(changed), undefined, changed);
    }
    for (let length = 0; length < token.length - 1; length += 1) {
      assert.equal(tokens.open(token.slice(0, length)), undefined);
    }
    assert.equal(createQueryTokens(macWith('another'), 8000).open(token), undefined);
    for (const text of ['é'.repeat(30), '='.repeat(30), 'x'.repeat(7000)])
      assert.equal(tokens.open(text), undefined);
  });
});
