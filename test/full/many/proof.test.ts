/** The judge of the mixed load sees what it is there to see. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer } from '../../harness/exchange.ts';
import type { StreamedEvent } from '../../wire/resources/event-reader.ts';
import { type Attempt, createJournal, type Fate } from './journal.ts';
import { proveContested, proveEvents } from './proof.ts';

function attempt(tag: string, fate: Fate, base?: string, etag?: string): Attempt {
  return { tag, fate, base, etag };
}

function judge(tags: readonly string[], ...attempts: readonly Attempt[]): readonly string[] {
  const violations: string[] = [];
  proveContested('/p', tags, attempts, violations);
  return violations;
}

describe('proveContested', () => {
  it('accepts a chain of winners, with one of which nobody knows', () => {
    const chain = [
      attempt('a', 'made', '"1"', '"2"'),
      attempt('b', 'unknown', '"2"'),
      attempt('x', 'not-made', '"2"'),
      attempt('c', 'made', undefined, '"4"'),
      attempt('y', 'unknown', '"4"'),
    ];
    assert.deepEqual(judge(['a', 'b', 'c'], ...chain), []);
  });

  it('tells a lost change, one that was refused and made, one made twice, and one that nobody sent', () => {
    assert.match(String(judge([], attempt('a', 'made', '"1"', '"2"'))), /a is lost/);
    assert.match(String(judge(['a'], attempt('a', 'not-made', '"1"'))), /refused and is there/);
    assert.match(String(judge(['a', 'a'], attempt('a', 'made', '"1"', '"2"'))), /added twice/);
    assert.match(String(judge(['a'])), /nobody sent/);
  });

  it('tells two winners of one race, and a winner that was made from another version', () => {
    const two = judge(['a', 'b'], attempt('a', 'made', '"1"'), attempt('b', 'unknown', '"1"'));
    assert.match(String(two), /"1" was won by a and by b/);
    const other = judge(['a', 'b'], attempt('a', 'made', '"1"', '"2"'), attempt('b', 'made', '"9"', '"10"'));
    assert.match(String(other), /b was made from "9" and stands after "2"/);
  });
});

describe('proveEvents', () => {
  const event = (id: string, type: string, object: Readonly<Record<string, unknown>>): StreamedEvent => {
    return { id, event: type, data: JSON.stringify({ id, type, data: { object } }) };
  };
  const log = [
    event('e1', 'products.created', { id: 'a' }),
    event('e2', 'products.updated', { id: 'a', tags: ['x'] }),
    event('e3', 'products.updated', { id: 'a', tags: ['x', 'y'] }),
  ];
  const [e1, e2, e3] = log as [StreamedEvent, StreamedEvent, StreamedEvent];

  /** A process whose log holds these, after an event that the tails began at. */
  async function judgeTails(...tails: readonly (readonly StreamedEvent[])[]): Promise<string> {
    const items = [{ id: 'e0' }, ...log];
    const answer = { json: () => ({ items, nextCursor: null }) } as unknown as Answer;
    const violations: string[] = [];
    const journal = createJournal([], violations);
    journal.standing.set('/p/a', { path: '/p/a', name: 'a', etag: '"1"' });
    await proveEvents({ send: async () => answer }, '/events', 'e0', tails, journal, violations);
    return violations.join('\n');
  }

  it('accepts tails that saw every event once and in one order', async () => {
    assert.equal(await judgeTails(log, log), '');
  });

  it('tells an event that was missed, seen twice, unknown to the log, or seen in another order', async () => {
    assert.match(await judgeTails(log, [e1, e2]), /tail 1 missed 1 events: e3/);
    assert.match(await judgeTails(log, [e1, e2, e3, e2]), /tail 1 saw e2 twice/);
    assert.match(await judgeTails([...log, { ...e3, id: 'e4' }]), /saw e4, which the log has not/);
    assert.match(await judgeTails(log, [e2, e1, e3]), /tails 0 and 1 differ in order from event 0 on/);
    assert.match(await judgeTails([e1, e3, e2]), /an event of a came out of order/);
  });

  it('tells a resource that was made with two events or none', async () => {
    assert.match(await judgeTails([e1, { ...e1, id: 'e2' }, e3]), /\/p\/a has 2 events products.created/);
    assert.match(await judgeTails([e2, e3]), /\/p\/a has 0 events products.created/);
  });
});
