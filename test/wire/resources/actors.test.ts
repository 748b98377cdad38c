/** Who caused an event (§2.9): in the log and in streams, for each kind of caller, and who is shown it; deliveries have none of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  makeKey,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';
import { startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../fixtures/actors.config.ts', import.meta.url));
const { client } = await serveAccounts({ config, env: { COMITY_EGRESS_ALLOW: '127.0.0.0/8' } });
const ada = await register(client, 'ada@actors.example', 'correct horse battery');
const bob = await register(client, 'bob@actors.example', 'correct horse battery');

type Event = {
  readonly id: string;
  readonly type: string;
  readonly actor?: { readonly kind: string; readonly id: string | null; readonly keyId?: string };
  readonly requestId?: string;
  readonly data: { readonly object: { readonly id: string; readonly text?: string } };
};

type Headers = Readonly<Record<string, string>>;

async function eventsOf(id: string, headers: Headers = asAdministrator): Promise<readonly Event[]> {
  const answer = await client.ask('GET', `${base}/events?data.object.id=${id}`, { headers });
  assert.equal(answer.status, 200, answer.body);
  return answer.json().items as readonly Event[];
}

async function create(collection: string, text: string, headers: Headers = {}): Promise<string> {
  const made = await client.ask('POST', `${base}/${collection}`, { headers, json: { text } });
  assert.equal(made.status, 201, made.body);
  return String(made.json().id);
}

const causes = (events: readonly Event[]) => events.map(({ type, actor }) => [type, actor]);

test('names the account, the key, the administrator key and the anonymous caller, with the request', async () => {
  const key = await makeKey(client, bearer(ada.token));
  const id = await create('posts', 'one');
  const path = `${base}/posts/${id}`;
  const as = async (method: string, headers: Headers, json?: unknown): Promise<Answer> => {
    const answer = await client.ask(method, path, { headers, ...(json === undefined ? {} : { json }) });
    assert.ok(answer.status < 300, answer.body);
    return answer;
  };
  await as('PATCH', bearer(ada.token), { text: 'two' });
  await as('PUT', { 'X-API-Key': String(key.key) }, { text: 'three' });
  await as('DELETE', asAdministrator);
  const events = await eventsOf(id);
  assert.deepEqual(causes(events), [
    ['posts.created', { kind: 'anonymous', id: null }],
    ['posts.updated', { kind: 'user', id: ada.userId }],
    ['posts.updated', { kind: 'key', id: ada.userId, keyId: key.id }],
    ['posts.deleted', { kind: 'administrator-key', id: 'administrator' }],
  ]);
  assert.equal(new Set(events.map(({ requestId }) => requestId)).size, 4);
  for (const { requestId } of events) assert.match(String(requestId), /^[0-9a-f]+-[0-9a-f]+$/);
  const one = await client.ask('GET', `${base}/events/${events[1]?.id}`, { headers: asAdministrator });
  assert.deepEqual(one.json(), events[1]);
});

test('carries the caller through asynchronous requests, bulk deletion, actions, hooks and posted events', async () => {
  const headers = bearer(ada.token);
  const by = { kind: 'user', id: ada.userId };
  const id = await create('pages', 'first', headers);
  const [hooked] = (await postsNow()).filter(({ data }) => data.object.text === 'by a hook');
  const [created] = await eventsOf(id);
  assert.deepEqual([created?.actor, hooked?.actor], [by, by]);
  assert.equal(hooked?.requestId, created?.requestId, 'of one request');
  const shouted = await client.ask('POST', `${base}/pages/${id}/shout`, { headers });
  assert.equal(shouted.status, 204, shouted.body);
  const queued = await client.ask('PATCH', `${base}/pages/${id}`, {
    headers: { ...headers, Prefer: 'respond-async' },
    json: { text: 'later' },
  });
  assert.equal(queued.status, 202, queued.body);
  await until(async () => (await eventsOf(id)).length === 3, 'the operation is carried out');
  const removed = await client.ask('POST', `${base}/pages/bulk-delete`, { headers, json: { ids: [id] } });
  assert.deepEqual(removed.json(), { deleted: 1 });
  const events = await eventsOf(id);
  assert.deepEqual(causes(events), [
    ['pages.created', by],
    ['pages.updated', by],
    ['pages.updated', by],
    ['pages.deleted', by],
  ]);
  const echoed = async () => (await postsNow()).find(({ data }) => data.object.text === `user ${ada.userId}`);
  await until(async () => (await echoed()) !== undefined, 'the subscriber has run');
  const echo = await echoed();
  assert.deepEqual([echo?.actor, echo?.requestId], [{ kind: 'subscriber', id: 'echo' }, undefined]);
  const posted = await client.ask('POST', `${base}/events`, {
    headers: asAdministrator,
    json: { type: 'invoice.paid', id: 'inv-1', data: { object: { id: 'i', actor: 'x' } } },
  });
  assert.equal(posted.status, 202, posted.body);
  assert.equal(posted.json().actor, undefined, 'a response to the caller needs no name of it');
  const again = await client.ask('POST', `${base}/events`, {
    headers: asAdministrator,
    json: { type: 'invoice.paid', id: 'inv-1', data: { object: { id: 'i', actor: 'x' } } },
  });
  assert.deepEqual([again.status, again.json()], [200, posted.json()]);
  assert.deepEqual((await eventsOf('i'))[0]?.actor, { kind: 'administrator-key', id: 'administrator' });
});

async function postsNow(): Promise<readonly Event[]> {
  const answer = await client.ask('GET', `${base}/events?type=posts.created&limit=1000`, {
    headers: asAdministrator,
  });
  return answer.json().items as readonly Event[];
}

test('shows the cause to administrators and to the actor itself; to readers only the actor, and only where the collection says so', async () => {
  const id = await create('posts', 'mine', bearer(ada.token));
  const page = await create('pages', 'shown', bearer(ada.token));
  const [mine] = await eventsOf(id, bearer(ada.token));
  assert.deepEqual(mine?.actor, { kind: 'user', id: ada.userId });
  assert.ok(mine?.requestId);
  for (const headers of [bearer(bob.token), {}]) {
    const [other] = await eventsOf(id, headers);
    assert.deepEqual(Object.keys(other ?? {}), ['id', 'object', 'type', 'created', 'data']);
    const [shown] = await eventsOf(page, headers);
    assert.deepEqual([shown?.actor, shown?.requestId], [{ kind: 'user', id: ada.userId }, undefined]);
    const one = await client.ask('GET', `${base}/events/${other?.id}`, { headers });
    assert.deepEqual(one.json(), other);
    const whole = await client.ask('GET', `${base}/events/${other?.id}`, { headers: asAdministrator });
    assert.notEqual(
      one.headers.etag,
      whole.headers.etag,
      'representations that differ have tags that differ',
    );
  }
});

test('no member of a body names another actor: what a client calls actor is a member of its document', async () => {
  const made = await client.ask('POST', `${base}/posts`, {
    json: { text: '","actor":{"kind":"user","id":"usr_x"},"requestId":"r","data":{"object":{' },
  });
  const [event] = await eventsOf(String(made.json().id));
  assert.deepEqual(event?.actor, { kind: 'anonymous', id: null });
  assert.equal(event?.data.object.text, made.json().text);
  const typed = await client.ask('POST', `${base}/events`, {
    headers: asAdministrator,
    json: {
      ...{ type: 'a.b', id: 'forged', tenant: ',"data":{"object":{},"actor":{"kind":"user","id":"x"}' },
      data: { object: { id: 'forged', actor: { kind: 'user', id: 'usr_x' } } },
    },
  });
  assert.equal(typed.status, 202, typed.body);
  const [forged] = await eventsOf('forged');
  assert.deepEqual(forged?.actor, { kind: 'administrator-key', id: 'administrator' });
});

test('delivers the same members as before, byte for byte: neither actor nor requestId', async () => {
  const receiver = await startDeliveryReceiver();
  for (const scheme of ['timestamped', 'plain', 'standard']) {
    const made = await client.ask('POST', `${base}/endpoints`, {
      headers: asAdministrator,
      json: { url: `${receiver.url}/${scheme}`, events: ['posts.created'], scheme },
    });
    assert.equal(made.status, 201, made.body);
  }
  const id = await create('posts', 'to deliver', bearer(ada.token));
  const document = (await client.ask('GET', `${base}/posts/${id}`)).body;
  const [event] = await eventsOf(id);
  const created = (event as unknown as { created: number }).created;
  const whole = `{"id":"${event?.id}","object":"event","type":"posts.created","created":${created},"data":{"object":${document}}}`;
  for (const scheme of ['timestamped', 'plain']) {
    const { body } = await receiver.arrival(`/${scheme}`, 1);
    assert.equal(body.toString(), whole);
  }
  const { body } = await receiver.arrival('/standard', 1);
  assert.deepEqual(JSON.parse(body.toString()).data, JSON.parse(document));
  assert.equal(body.includes('"actor"'), false);
});
