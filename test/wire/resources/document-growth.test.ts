/**
 * A representation may not grow without bound: patches are short, what they add up to need not be (§8).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverOfFile } from '../../harness/running-server.ts';

const charactersMax = 2048;

const program = await serverOfFile({ env: { COMITY_DOCUMENT_CHARACTERS_MAX: String(charactersMax) } });

test('a patch that makes the resource longer than the limit is 413 and changes nothing', async () => {
  const made = await program.send('POST', '/api/v1/notes', { json: { text: 'x' } });
  const path = String(made.headers.location);
  const room = charactersMax - made.body.length + 1;
  const patch = (length: number) => program.send('PATCH', path, { json: { text: 'x'.repeat(length) } });
  const fits = await patch(room);
  assert.equal(fits.status, 200, fits.body);
  assert.equal(fits.body.length, charactersMax);
  const long = await patch(room + 1);
  assert.equal(long.status, 413);
  assert.equal(long.json().code, 'content_too_large');
  assert.equal((await program.send('GET', path)).body, fits.body);
});
