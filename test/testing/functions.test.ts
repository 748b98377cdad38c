/** Functions on threads in a test: where they are imported from, and how their failures are seen. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collection, defineConfig, Type } from 'comity';
import { createTestComity } from 'comity/testing';
import config from './fixtures/functions.config.ts';

const now = '2026-03-01T09:00:00.000Z';

test('imports subscribers and jobs from the file that defines the configuration', async (t) => {
  const comity = await createTestComity(config, { now });
  t.after(() => comity.close());
  const { notes } = comity.resources;
  await notes.create({ text: 'x' });
  await comity.until(async () => (await notes.list({ filter: { text: 're: x' } })).length === 1);
  comity.clock.advance(25 * 60 * 60 * 1000);
  await comity.until(async () => (await notes.list({ filter: { text: 're: nightly' } })).length > 0);
});

test('starts a configuration of the test itself, whose functions on threads say what they need', async (t) => {
  const comity = await createTestComity(
    defineConfig({
      collections: { notes: collection({ schema: Type.Object({ text: Type.String() }) }) },
      subscribers: { answer: { events: ['notes.created'], handler: () => undefined } },
    }),
    { now },
  );
  t.after(() => comity.close());
  assert.equal((await comity.resources.notes.create({ text: 'x' })).text, 'x');
  const failure = await comity.until(() => comity.failures[0]);
  assert.match(String(failure), /answer failed .* run on threads.*option module/);
});

test('keeps what a function on a thread throws, and tries it again when the clock is turned', async (t) => {
  const comity = await createTestComity(config, { now });
  t.after(() => comity.close());
  await comity.resources.notes.create({ text: 'broken' });
  const failure = await comity.until(() => comity.failures[0]);
  assert.ok(failure instanceof Error);
  assert.match(String(failure), /FunctionFailed: .*answer failed \(attempt 1\): Error: the subscriber broke/);
  assert.match(failure.stack ?? '', /functions\.config\.ts:13:/);
  comity.clock.advance(60 * 60 * 1000);
  await comity.until(() => comity.failures.length === 2);
  const waited = comity.until(() => {
    comity.clock.advance(60 * 60 * 1000);
    return undefined;
  }, 500);
  await assert.rejects(
    waited,
    /nothing was found within 500 ms: .*\nmeanwhile: FunctionFailed: .*the subscriber broke/s,
  );
});
