import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { OctetCache, octetsOfText, octetsOfValue } from '../../src/memory/octet-cache.ts';

const texts = (octetsMax: number) => new OctetCache<string>({ octetsMax, octetsOf: octetsOfText });

suite('a cache bounded in octets', () => {
  test('gives back what it was given, and the later of two values', () => {
    const cache = texts(10_000);
    cache.set('a', 'one');
    cache.set('b', 'two');
    cache.set('a', 'three');
    assert.deepEqual([cache.get('a'), cache.get('b'), cache.get('c')], ['three', 'two', undefined]);
    assert.equal(cache.size, 2);
  });

  test('holds no more octets than its bound, whatever the sizes of entries', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(50), fc.nat(3000), fc.constantFrom('set', 'get', 'delete'))),
        (steps) => {
          const cache = texts(16_384);
          for (const [key, length, step] of steps) {
            if (step === 'set') cache.set(`${key}`, 'x'.repeat(length));
            else if (step === 'get') cache.get(`${key}`);
            else cache.delete(`${key}`);
            assert.ok(cache.octets <= 16_384, `${cache.octets} octets`);
            assert.ok(cache.octets >= cache.size * 100);
          }
          cache.clear();
          assert.deepEqual([cache.size, cache.octets], [0, 0]);
        },
      ),
    );
  });

  test('keeps an entry of an eighth of the bound and none that is larger', () => {
    const cache = new OctetCache<number>({ octetsMax: 8000, octetsOf: (octets) => octets });
    const own = 128 + octetsOfText('k');
    cache.set('k', 1000 - own);
    assert.equal(cache.get('k'), 1000 - own);
    cache.set('k', 1001 - own);
    assert.equal(cache.get('k'), undefined, 'the earlier value went with the one that was too large');
    assert.equal(cache.octets, 0);
  });

  test('keeps what is used while others come and go', () => {
    const cache = texts(20_000);
    cache.set('used', 'value');
    for (let at = 0; at < 1000; at += 1) {
      cache.set(`other ${at}`, 'x'.repeat(200));
      assert.equal(cache.get('used'), 'value');
    }
    assert.equal(cache.get('other 0'), undefined);
    assert.equal(cache.get('other 999'), 'x'.repeat(200));
  });

  test('keeps nothing with a bound of 0', () => {
    const cache = texts(0);
    cache.set('a', '');
    assert.deepEqual([cache.get('a'), cache.size, cache.octets], [undefined, 0, 0]);
  });

  test('deletes an entry only while it holds the value that is named', () => {
    const cache = texts(10_000);
    cache.set('a', 'new');
    cache.delete('a', 'old');
    assert.equal(cache.get('a'), 'new');
    cache.delete('a', 'new');
    assert.equal(cache.get('a'), undefined);
  });
});

suite('estimates of memory', () => {
  test('counts two octets for each character of a long text that is not ASCII', () => {
    assert.equal(octetsOfText('a'.repeat(1000)), 1000);
    assert.equal(octetsOfText('é'.repeat(1000)), 2000);
    assert.equal(octetsOfText('日'.repeat(1000)), 2000);
    assert.equal(octetsOfText('a'), 2);
  });

  test('counts all that a tree of values holds, but not what is shared', () => {
    const shared = { big: 'x'.repeat(100_000) };
    const tree = { list: ['y'.repeat(1000), new Set(['z'.repeat(2000)])], map: new Map([['k', shared]]) };
    const octets = octetsOfValue(tree, (value) => value === shared);
    assert.ok(octets > 3000 && octets < 4000, `${octets}`);
    assert.ok(octetsOfValue(tree) > 100_000);
    assert.ok(octetsOfValue(new Uint8Array(5000)) > 5000);
  });
});
