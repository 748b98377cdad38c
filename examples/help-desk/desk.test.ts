/** The rules of the desk, with a clock to turn: `node --test examples/help-desk/desk.test.ts`. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createTestComity, type TestComity } from 'comity/testing';
import config from './comity.config.ts';
import type { Desk } from './schemas.ts';

const module = new URL('./comity.config.ts', import.meta.url);
type Caller = ReturnType<TestComity<Desk>['as']>;

const dayMs = 24 * 3_600_000;

describe('the help desk', () => {
  let desk: TestComity<Desk>;
  let customer: Caller;
  let stranger: Caller;
  let agent: Caller;

  before(async () => {
    desk = (await createTestComity(config, { now: '2026-03-02T09:00:00Z', module })) as TestComity<Desk>;
    const { create } = desk.accounts;
    customer = desk.as(await create({ email: 'ada@lighthouse.example', tenant: 'lighthouse' }));
    stranger = desk.as(await create({ email: 'eve@other.example', tenant: 'other' }));
    agent = desk.as(await create({ email: 'sam@desk.example', roles: ['agent'] }));
  });

  after(() => desk.close());

  const ask = (title: string, priority: 'normal' | 'urgent' = 'normal') =>
    customer.resources.tickets.create({ title, status: 'open', priority, contact: 'ada@lighthouse.example' });
  const say = (by: Caller, ticketId: string, text: string) =>
    by.resources.comments.create({ ticketId, text });
  const mailsAbout = (title: string) => desk.mails.filter(({ subject }) => subject.endsWith(title));

  test('sets when an answer is due, and shows a question to its organisation alone', async () => {
    const ticket = await ask('The door does not close', 'urgent');
    assert.equal(ticket.dueAt, '2026-03-02T13:00:00.000Z');
    assert.equal(ticket.organisationId, 'lighthouse');
    assert.equal(await stranger.resources.tickets.get(ticket.id), undefined);
    assert.equal((await agent.resources.tickets.get(ticket.id))?.title, ticket.title);
    await assert.rejects(say(stranger, ticket.id, 'me too'), { code: 'reference_missing' });
  });

  test('tells the one who asked, and opens a solved question again by an answer', async () => {
    const { id } = await ask('The lamp is dark');
    const [received] = await desk.until(() => {
      const mails = mailsAbout('The lamp is dark');
      return mails.length > 0 && mails;
    });
    assert.deepEqual(received?.to, ['ada@lighthouse.example']);
    await agent.resources.tickets.update(id, { status: 'solved' });
    const answer = await say(agent, id, 'We changed the bulb.');
    assert.equal(answer.byAgent, true);
    await desk.until(() => mailsAbout('The lamp is dark').some(({ text }) => text.includes('bulb')));
    await say(customer, id, 'It is dark again.');
    await desk.until(async () => (await desk.resources.tickets.get(id))?.status === 'open');
  });

  test('merges two questions, and refuses in the words of the desk', async () => {
    const [one, other] = [await ask('Keys lost'), await ask('The keys are lost')];
    await say(customer, one.id, 'Both of them.');
    const merge = (by: Caller, into: string) =>
      by.fetch(`/api/v1/tickets/${one.id}/merge`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ into }),
      });
    assert.equal((await merge(customer, other.id)).status, 403);
    const same = await merge(agent, one.id);
    assert.deepEqual([same.status, ((await same.json()) as { code: string }).code], [422, 'same_ticket']);
    assert.deepEqual(await (await merge(agent, other.id)).json(), { moved: 1 });
    assert.equal((await agent.resources.tickets.get(one.id))?.mergedInto, other.id);
    const [moved] = await agent.resources.comments.list({ filter: { ticketId: other.id } });
    assert.deepEqual([moved?.text, moved?.byAgent], ['Both of them.', false]);
    await assert.rejects(customer.resources.tickets.update(one.id, { title: 'Found' }), {
      code: 'ticket_closed',
      status: 409,
    });
  });

  test('closes at night what has been solved for a week', async () => {
    const { id } = await ask('The stairs creak');
    await agent.resources.tickets.update(id, { status: 'solved' });
    desk.clock.advance(8 * dayMs);
    await desk.until(async () => (await desk.resources.tickets.get(id))?.status === 'closed');
  });
});
