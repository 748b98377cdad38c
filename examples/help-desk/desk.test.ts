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
    for (const [id, name] of [
      ['lighthouse', 'Lighthouse Ltd'],
      ['other', 'Others'],
    ] as const)
      await desk.resources.organisations.create({ name }, { id });
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

  test('counts open questions by priority, of those that the caller may see', async () => {
    const countsFor = async (by: Caller) => {
      const answer = await by.fetch('/api/v1/tickets', {
        method: 'QUERY',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({
          filter: { status: 'open', title: { like: 'Counted%' } },
          groupBy: ['priority'],
          aggregate: { count: true, min: { nextDue: 'dueAt' } },
        }),
      });
      return ((await answer.json()) as { items: { priority: string; count: number }[] }).items;
    };
    await ask('Counted: the heating is off', 'urgent');
    for (const title of ['Counted: a chair', 'Counted: a desk']) await ask(title);
    const counts = (await countsFor(agent)).map(({ priority, count }) => [priority, count]);
    assert.deepEqual(counts, [
      ['normal', 2],
      ['urgent', 1],
    ]);
    assert.deepEqual(await countsFor(stranger), []);
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

  test('shows accounts to agents and to their own organisation, which a manager administers', async () => {
    const { create } = desk.accounts;
    const own = { tenant: 'lighthouse', organisationId: 'lighthouse' };
    const lead = await create({ email: 'lea@lighthouse.example', ...own, role: 'lead' });
    const member = await create({ email: 'tom@lighthouse.example', ...own });
    const manager = await create({ email: 'max@lighthouse.example', ...own, roles: ['manager'] });
    const seen = async (by: Caller) =>
      (await by.resources.users.list({ filter: { organisationId: 'lighthouse' } }))
        .map(({ id }) => id)
        .sort();
    const all = [lead.id, member.id, manager.id].sort();
    assert.deepEqual(await seen(desk.as(member)), all);
    assert.deepEqual(await seen(agent), all);
    assert.deepEqual(await seen(stranger), []);
    const change = (by: Caller, id: string, json: object) =>
      by.fetch(`/api/v1/users/${id}`, {
        method: 'PATCH',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(json),
      });
    assert.equal((await change(desk.as(manager), member.id, { role: 'lead' })).status, 200);
    assert.equal((await change(desk.as(manager), member.id, { roles: ['agent'] })).status, 403);
    assert.equal((await change(desk.as(member), member.id, { role: 'member' })).status, 400);
    assert.equal((await change(desk.as(member), member.id, { phone: '+44 20' })).status, 200);
    const { id } = await ask('The gate is open');
    await desk.as(lead).resources.tickets.update(id, { priority: 'urgent' });
    await assert.rejects(desk.as(manager).resources.tickets.update(id, { priority: 'normal' }), {
      code: 'forbidden',
    });
  });

  test('assigns tickets to agents, who then cannot be removed', async () => {
    const sara = await desk.accounts.create({ email: 'sara@desk.example', roles: ['agent'] });
    const { id } = await ask('The well is dry');
    const assign = (by: Caller, assigneeId: string) => by.resources.tickets.update(id, { assigneeId });
    await assert.rejects(assign(customer, sara.id), { code: 'field_unpatchable' });
    await assert.rejects(assign(agent, 'usr_nobody'), { code: 'not_an_agent' });
    const [ada] = await desk.resources.users.list({ filter: { email: 'ada@lighthouse.example' } });
    await assert.rejects(assign(agent, ada?.id ?? ''), { code: 'not_an_agent' });
    assert.equal((await assign(agent, sara.id)).assigneeId, sara.id);
    const headers = { Authorization: `Bearer ${desk.adminKey}` };
    const removed = await desk.fetch(`/api/v1/users/${sara.id}`, { method: 'DELETE', headers });
    assert.equal(removed.status, 409);
  });

  test('shows tickets with what was said about them, and deletes both together', async () => {
    const { id } = await ask('The window is stuck');
    await say(customer, id, 'Since Monday.');
    const read = async (path: string) =>
      (await (await agent.fetch(`/api/v1/${path}`)).json()) as {
        included: Record<string, Record<string, { title: string }>>;
        counts: Record<string, Record<string, number>>;
      };
    const { included } = await read(`comments?ticketId=${id}&expand=ticketId`);
    assert.equal(included.tickets?.[id]?.title, 'The window is stuck');
    assert.deepEqual((await read(`tickets/${id}?counts=commentCount`)).counts, { [id]: { commentCount: 1 } });
    await agent.resources.tickets.delete(id);
    assert.deepEqual(await agent.resources.comments.list({ filter: { ticketId: id } }), []);
  });

  test('shows a comment to those whose organisation has its ticket, with the organisation', async () => {
    const { id } = await ask('The roof leaks');
    const { id: comment } = await say(agent, id, 'Someone comes tomorrow.');
    const colleague = desk.as(
      await desk.accounts.create({ email: 'joe@lighthouse.example', tenant: 'lighthouse' }),
    );
    const seen = async (by: Caller) => (await by.resources.comments.get(comment))?.text;
    assert.equal(await seen(colleague), 'Someone comes tomorrow.');
    assert.equal(await seen(stranger), undefined);
    const page = await colleague.fetch(`/api/v1/comments?ticketId=${id}&expand=ticketId.organisationId`);
    const { included } = (await page.json()) as {
      included: { organisations: Record<string, { name: string }> };
    };
    assert.equal(included.organisations.lighthouse?.name, 'Lighthouse Ltd');
    const found = await agent.fetch('/api/v1/comments?ticketId.organisationId=lighthouse&q=tomorrow');
    assert.equal(((await found.json()) as { items: object[] }).items.length, 1);
    const theirs = await stranger.resources.tickets.create({
      title: 'Our roof leaks',
      contact: 'eve@other.example',
    });
    await agent.resources.comments.update(comment, { ticketId: theirs.id });
    assert.equal(await seen(colleague), undefined);
    assert.equal(await seen(stranger), 'Someone comes tomorrow.');
  });

  test('notes who asked, who wrote and who changed, and who did it in the history', async () => {
    const ticket = await ask('The tap drips');
    const { authorId } = await say(agent, ticket.id, 'Which tap?');
    const solved = await agent.resources.tickets.update(ticket.id, { status: 'solved' });
    assert.equal(ticket.askedBy, ticket.changedBy);
    assert.deepEqual([solved.askedBy, solved.changedBy], [ticket.askedBy, authorId]);
    await assert.rejects(customer.resources.tickets.update(ticket.id, { askedBy: 'usr_me' }), {
      code: 'field_unpatchable',
    });
    const headers = { Authorization: `Bearer ${desk.adminKey}` };
    const history = await desk.fetch(`/api/v1/tickets/${ticket.id}/history`, { headers });
    const { items } = (await history.json()) as { items: { change: string; actor: { id: string } }[] };
    assert.deepEqual(
      items.map(({ change, actor }) => [change, actor.id]),
      [
        ['updated', authorId],
        ['created', ticket.askedBy],
      ],
    );
  });

  test('finds questions by their words, whatever their form', async () => {
    const { id } = await ask('Two windows are broken');
    const found = await agent.resources.tickets.list({ q: 'window break*' });
    assert.deepEqual(
      found.map((ticket) => ticket.id).filter((each) => each === id),
      [],
      'a prefix is a prefix',
    );
    const [one] = await agent.resources.tickets.list({ q: 'window broke*' });
    assert.equal(one?.id, id);
    assert.deepEqual(await stranger.resources.tickets.list({ q: 'window broke*' }), []);
  });

  test('forgets what a ticket was merged into when that is deleted, and keeps organisations with tickets', async () => {
    const [one, other] = [await ask('No light'), await ask('No light at all')];
    await desk.resources.tickets.update(one.id, { status: 'closed', mergedInto: other.id });
    await agent.resources.tickets.delete(other.id);
    const left = await agent.resources.tickets.get(one.id);
    assert.deepEqual([left?.status, left?.mergedInto], ['closed', undefined]);
    await assert.rejects(agent.resources.organisations.delete('lighthouse'), { code: 'dependants_exist' });
  });

  test('takes many questions at once, and an import keeps who asked and when', async () => {
    const send = async (headers: Record<string, string>, json: object) => {
      const answer = await desk.fetch('/api/v1/tickets/bulk', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(json),
      });
      return [answer.status, (await answer.json()) as { items: { status: number; id: string }[] }] as const;
    };
    const asAdministrator = { Authorization: `Bearer ${desk.adminKey}` };
    const ticket = { title: 'Moved in', contact: 'ada@lighthouse.example', organisationId: 'lighthouse' };
    const [status, { items }] = await send(asAdministrator, {
      items: [ticket, { ...ticket, priority: 'none' }],
      atomic: false,
    });
    assert.deepEqual([status, items.map((item) => item.status)], [200, [201, 422]]);
    const old = { ...ticket, id: 'old-1', createdAt: '2020-05-04T12:00:00.000Z', askedBy: 'usr_long_gone' };
    await send(asAdministrator, { items: [old], import: true });
    const moved = await agent.resources.tickets.get('old-1');
    assert.deepEqual([moved?.createdAt, moved?.askedBy], [old.createdAt, old.askedBy]);
  });

  test('closes at night what has been solved for a week', async () => {
    const { id } = await ask('The stairs creak');
    await agent.resources.tickets.update(id, { status: 'solved' });
    desk.clock.advance(8 * dayMs);
    await desk.until(async () => (await desk.resources.tickets.get(id))?.status === 'closed');
  });
});
