/** Threads for long content: the same answers as on the event loop, turns by party, bounds, and the end of work without end. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { collection } from '../../../src/config/define.ts';
import { contentLimitsDefault } from '../../../src/kernel/content/content-shape.ts';
import {
  createContentThreads,
  mayBacktrack,
} from '../../../src/resources/content-threads/content-threads.ts';
import type { Job } from '../../../src/resources/content-threads/job.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';

const { collections } = resolveConfiguration({
  collections: {
    plain: collection({
      schema: Type.Object({ n: Type.Optional(Type.Integer()), data: Type.Optional(Type.Unknown()) }),
    }),
    endless: collection({ schema: Type.Object({ text: Type.String({ pattern: '^(a+)+$' }) }) }),
    distinct: collection({
      schema: Type.Object({ items: Type.Array(Type.Integer(), { uniqueItems: true }) }),
    }),
  },
});

function threadsFor(context: TestContext, given: Partial<Parameters<typeof createContentThreads>[0]> = {}) {
  const settings = {
    ...contentLimitsDefault,
    ...{ patchOperationsMax: 1000, validationErrorsMax: 20 },
    ...{
      contentThreads: 1,
      contentInlineBytesMax: 32_768,
      contentQueueBytesMax: 1_000_000,
      contentWorkTimeoutMs: 60_000,
    },
    ...given,
  };
  const threads = createContentThreads(settings, collections);
  context.after(() => threads.close());
  return (name: string) => {
    const found = collections.get(name);
    const of = found === undefined ? undefined : threads.of(found);
    assert.ok(of !== undefined);
    return of;
  };
}

function create(text: string): Job {
  const mediaType = { type: 'application/json', parameters: new Map<string, string>() };
  return {
    kind: 'propose',
    target: { change: 'create', id: '', current: undefined },
    writer: { principal: { kind: 'anonymous' }, owner: null, closings: { readOnly: [], hidden: [] } },
    content: { bytes: Buffer.from(text), mediaType },
  };
}

test('gives the text of the fields, or the problem', { timeout: 60_000 }, async (context) => {
  const of = threadsFor(context)('plain');
  const made = await of.carryOut(create('{"data":[1],"n":2}'), 'a');
  const fields = { text: '{"n":2,"data":[1]}', search: null, references: [] };
  assert.deepEqual(made, { ok: true, fields, unchanged: false });
  const refused = await of.carryOut(create('{"n":"x"}'), 'a');
  assert.ok(!refused.ok && refused.problem.code === 'validation_failed');
  const malformed = await of.carryOut(create('{"n":'), 'a');
  assert.ok(!malformed.ok && malformed.problem.code === 'content_malformed');
});

test('serves parties in turn, and refuses the newest of who has most waiting beyond `contentQueueBytesMax`', {
  timeout: 60_000,
}, async (context) => {
  const of = threadsFor(context, { contentQueueBytesMax: 1000 })('plain');
  const order: string[] = [];
  const work = (party: string, mark: string) =>
    of.carryOut(create(`{"data":"${mark}${'x'.repeat(200)}"}`), party).then(() => order.push(mark));
  const [first, second, third, fourth, other, late] = await Promise.allSettled([
    work('a', 'a1'),
    work('a', 'a2'),
    work('a', 'a3'),
    work('a', 'a4'),
    work('b', 'b1'),
    work('a', 'a5'),
  ]);
  assert.deepEqual(
    [first, second, third, fourth, other].map((each) => each?.status),
    Array(5).fill('fulfilled'),
  );
  assert.ok(late?.status === 'rejected' && late.reason instanceof StoreUnavailable);
  assert.deepEqual(order, ['a1', 'a2', 'b1', 'a3', 'a4']);
});

test('ends a check that takes longer than `contentWorkTimeoutMs`, and goes on with the next', {
  timeout: 60_000,
}, async (context) => {
  const of = threadsFor(context, { contentWorkTimeoutMs: 3000 })('endless');
  assert.equal(of.inlineBytesMax, 0);
  const endless = of.carryOut(create(`{"text":"${'a'.repeat(60)}!"}`), 'a');
  const next = of.carryOut(create('{"text":"aaa"}'), 'b');
  const outcome = await endless;
  assert.ok(!outcome.ok && outcome.problem.code === 'validation_failed');
  assert.match(outcome.problem.errors?.[0]?.message ?? '', /3000 ms/);
  assert.equal((await next).ok, true);
});

test('knows the schemas whose check is costly for short content', (context) => {
  const of = threadsFor(context);
  assert.deepEqual(
    ['plain', 'distinct', 'endless'].map((name) => of(name).inlineBytesMax),
    [32_768, 4096, 0],
  );
  for (const pattern of ['^(a+)+$', '(a|aa)*', '([a-z]+\\d?){2,}', '((a*)b)*'])
    assert.equal(mayBacktrack(pattern), true, pattern);
  for (const pattern of ['^a+$', '^[a-z(+)*]+$', '^(abc)+$', '^\\(a+\\)+$', '(a|b)c', '^.{1,20}$'])
    assert.equal(mayBacktrack(pattern), false, pattern);
});
