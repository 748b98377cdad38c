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
});
