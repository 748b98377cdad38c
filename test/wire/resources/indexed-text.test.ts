/**
 * Texts that an index holds (config/collections.ts): the same bound in bytes on both stores, whichever way a text comes in.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Answer } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const labels = '/api/v1/labels';

const config = fileURLToPath(new URL('../fixtures/labels.config.ts', import.meta.url));
const program = await serverOfFile({ config });

function refused(answer: Answer, pointer: string, bytesMax: number): void {
  assert.equal(answer.status, 422, answer.body);
  assert.equal(answer.json().code, 'validation_failed');
  const message = `must be at most ${bytesMax} bytes long in UTF-8, because it is indexed`;
  assert.deepEqual(answer.json().errors, [{ pointer, message }]);
}

test('takes a unique text of 2000 bytes and refuses one of 2001, in one, two, three and four bytes a character', async () => {
  for (const [character, bytes] of [
    ['a', 1],
    ['é', 2],
    ['€', 3],
    ['\u{1f600}', 4],
  ] as const) {
    const rest = '.'.repeat(2000 % bytes);
    const name = character.repeat(Math.floor(2000 / bytes)) + rest;
    assert.equal(Buffer.byteLength(name), 2000);
    const taken = await program.send('POST', labels, { json: { name } });
    assert.equal(taken.status, 201, taken.body);
    refused(await program.send('POST', labels, { json: { name: `${name}.` } }), '/name', 2000);
  }
});

test('gives two texts of one index half of it each, also a nested one', async () => {
  const half = 'é'.repeat(500);
  const both = { language: half, weight: 1, place: { city: half } };
  assert.equal((await program.send('POST', labels, { json: both })).status, 201);
  refused(await program.send('POST', labels, { json: { ...both, language: `${half}.` } }), '/language', 1000);
  const far = { ...both, place: { city: `${half}.` } };
  refused(await program.send('POST', labels, { json: far }), '/place/city', 1000);
});

test('leaves a text without an index as long as it likes', async () => {
  const answer = await program.send('POST', labels, { json: { note: 'é'.repeat(100_000) } });
  assert.equal(answer.status, 201);
});

test('keeps an id of 255 characters beside the longest text of an index', async () => {
  const path = `${labels}/${'i'.repeat(255)}`;
  const answer = await program.send('PUT', path, { json: { name: `long ${'n'.repeat(1995)}` } });
  assert.equal(answer.status, 201, answer.body);
  assert.equal((await program.send('PUT', `${path}i`, { json: {} })).status, 422);
});

test('holds for PUT that creates, PUT that replaces, both patch formats, forms, and for a reference', async () => {
  const long = 'x'.repeat(2001);
  const made = await program.send('POST', labels, { json: { note: 'patched' } });
  const path = String(made.headers.location);
  refused(await program.send('PUT', `${labels}/new`, { json: { name: long } }), '/name', 2000);
  assert.equal((await program.send('GET', `${labels}/new`)).status, 404, 'nothing was made');
  refused(await program.send('PUT', path, { json: { name: long } }), '/name', 2000);
  refused(await program.send('PATCH', path, { json: { name: long } }), '/name', 2000);
  const patch = [{ op: 'add', path: '/name', value: long }];
  const jsonPatch = { 'Content-Type': 'application/json-patch+json' };
  refused(await program.send('PATCH', path, { json: patch, headers: jsonPatch }), '/name', 2000);
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  refused(await program.send('POST', labels, { body: `name=${long}`, headers: form }), '/name', 2000);
  refused(await program.send('POST', labels, { json: { about: long } }), '/about', 2000);
  assert.equal((await program.send('GET', path)).headers.etag, made.headers.etag, 'nothing was changed');
});

test('lists a text that is too long beside the other faults', async () => {
  const answer = await program.send('POST', labels, { json: { name: 'x'.repeat(2001), weight: 'heavy' } });
  assert.equal(answer.status, 422);
  assert.deepEqual(answer.json().errors, [
    { pointer: '/weight', message: 'must be a number' },
    { pointer: '/name', message: 'must be at most 2000 bytes long in UTF-8, because it is indexed' },
  ]);
});
