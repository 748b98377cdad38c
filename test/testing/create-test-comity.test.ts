/** `comity/testing`: an application in the process of its tests, with a clock to turn and nothing that leaves the process. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { collection, defineConfig, Type } from 'comity';
import { createTestComity } from 'comity/testing';

const config = defineConfig({
  collections: {
    tickets: collection({
      schema: Type.Object({
        title: Type.String(),
        dueAt: Type.Optional(Type.String()),
        team: Type.Optional(Type.String()),
      }),
      tenantField: 'team',
      access: { read: 'tenant', create: 'principal', update: { role: 'agent' } },
      hooks: {
        beforeWrite({ after, now }) {
          if (after.title === 'broken') throw new Error('the hook broke');
          after.dueAt = new Date(now.getTime() + 3_600_000).toISOString();
        },
      },
    }),
  },
});
const now = '2026-03-01T09:00:00.000Z';

describe('createTestComity', () => {
  test('serves the typed calls and requests at the time of the test', async (t) => {
    const comity = await createTestComity(config, { now });
    t.after(() => comity.close());
    const ticket = await comity.resources.tickets.create({ title: 'It broke' });
    assert.equal(ticket.createdAt, now);
    assert.equal(ticket.dueAt, '2026-03-01T10:00:00.000Z');
    comity.clock.advance(60_000);
    assert.equal(comity.clock.now().toISOString(), '2026-03-01T09:01:00.000Z');
    assert.equal(
      (await comity.resources.tickets.create({ title: 'x' })).createdAt,
      '2026-03-01T09:01:00.000Z',
    );
    const response = await comity.fetch(`/api/v1/tickets/${ticket.id}`, {
      headers: { 'X-API-Key': comity.adminKey },
    });
    assert.equal(response.status, 200);
    assert.equal((await comity.fetch('/api/v1/tickets')).status, 401);
    assert.throws(() => comity.clock.set('yesterday'), TypeError);
  });

  test('acts as an account with its rights', async (t) => {
    const comity = await createTestComity(config, { now });
    t.after(() => comity.close());
    const ada = await comity.accounts.create({ email: 'ada@example.com', tenant: 'red', roles: ['agent'] });
    const bob = await comity.accounts.create({ email: 'bob@example.com', tenant: 'blue' });
    const made = await comity.as(ada).fetch('/api/v1/tickets', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"title":"Ours"}',
    });
    assert.equal(made.status, 201);
    const ticket = (await made.json()) as { id: string; team: string };
    assert.equal(ticket.team, 'red');
    assert.equal((await comity.as(bob).fetch(`/api/v1/tickets/${ticket.id}`)).status, 404);
    await assert.rejects(comity.as(bob).resources.tickets.update(ticket.id, { title: 'Mine' }), {
      status: 403,
    });
    assert.equal((await comity.as(ada).resources.tickets.update(ticket.id, { title: 'y' })).title, 'y');
    await assert.rejects(comity.accounts.create({ email: 'ada@example.com' }), /not created/);
  });

  test('captures mails and webhooks', async (t) => {
    const comity = await createTestComity(config, { now, settings: { publicUrl: 'https://desk.example' } });
    t.after(() => comity.close());
    const made = await comity.fetch('/api/v1/auth/register', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"email":"eve@example.com","password":"a password that is long"}',
    });
    assert.ok(made.ok, await made.text());
    const mail = await comity.until(() => comity.mails[0]);
    assert.deepEqual(mail.to, ['eve@example.com']);
    assert.match(mail.text, /desk\.example|code/);
    const endpoint = await comity.fetch('/api/v1/endpoints', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-API-Key': comity.adminKey },
      body: JSON.stringify({ url: 'https://8.8.8.8/hook', events: ['tickets.created'] }),
    });
    assert.equal(endpoint.status, 201, await endpoint.clone().text());
    await comity.resources.tickets.create({ title: 'Told' });
    const webhook = await comity.until(() => comity.webhooks[0]);
    assert.equal(webhook.url, 'https://8.8.8.8/hook');
    assert.equal((webhook.json() as { type: string }).type, 'tickets.created');
    assert.ok(webhook.headers['webhook-signature']);
  });

  test('tells what functions threw', async (t) => {
    const comity = await createTestComity(config);
    t.after(() => comity.close());
    await assert.rejects(comity.resources.tickets.create({ title: 'broken' }), {
      name: 'FunctionFailed',
      status: 500,
      code: 'internal',
    });
    assert.match(String(comity.failures[0]), /the hook broke/);
    await assert.rejects(comity.resources.as({ id: 'usr_x' }).tickets.create({ title: 'broken' }));
    assert.equal(comity.failures.length, 2);
    const response = await comity.fetch('/api/v1/tickets', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-API-Key': comity.adminKey },
      body: '{"title":"broken"}',
    });
    assert.equal(response.status, 500);
    assert.match(String(comity.failures[2]), /the hook broke/);
    await assert.rejects(
      createTestComity(defineConfig({ collections: { Bad: collection({ schema: Type.Object({}) }) } })),
      { name: 'ConfigurationError' },
    );
  });

  test('runs many at once in one process', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => createTestComity(config, { now })));
    await Promise.all(all.map((each, number) => each.resources.tickets.create({ title: `t${number}` })));
    const titles = await Promise.all(all.map((each) => each.resources.tickets.list()));
    assert.deepEqual(
      titles.map((list) => list.map(({ title }) => title)),
      all.map((_, number) => [`t${number}`]),
    );
    await Promise.all(all.map((each) => each.close()));
  });
});
