/** Senders that bring their secret in a handshake, as Asana does: the first one counts, and no later one replaces it. */
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { secretCharactersMax } from '../../../src/config/sender-secrets.ts';
import { memoryStore, receive } from '../../../src/webhooks/receive/receive.ts';
import { loadSenderSecrets } from '../../../src/webhooks/receiving/sender-secrets.ts';
import { engines } from '../../harness/stores.ts';
import { declared, walkSenders } from './walked-senders.ts';

const body = '{"events":[{"action":"changed","resource":{"gid":"1","resource_type":"task"}}]}';
const brought = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81';
const signed = (key: string) => createHmac('sha256', key).update(body).digest('hex');
const senders = new Map(
  ['tasks', 'given', 'long'].map((name) => [name, declared(name, 'asana', { handOn: { kind: 'inbox' } })]),
);
const given = new Map([['GIVEN_WEBHOOK_SECRET', ['of the environment']]]);

for (const [engine, open] of engines) {
  test(`${engine}: the first handshake sets the secret, and is answered with it`, async (context) => {
    const stores = await open(context);
    const options = { senders, given, clock: Date.now, random: randomBytes, observe: assert.ifError };
    const [one, other] = await Promise.all(stores.map((store) => loadSenderSecrets({ ...options, store })));
    assert.ok(one !== undefined && other !== undefined);
    context.after(() => Promise.all([one.secrets.close(), other.secrets.close()]));
    assert.deepEqual([...one.made, ...other.made], [], 'no secret is made for a sender that brings one');
    const rooms = [one, other].map(({ secrets }, at) =>
      walkSenders(stores[at] ?? stores[0], { senders: [...senders.values()], secrets }),
    );
    const [here, there] = rooms;
    assert.ok(here !== undefined && there !== undefined);
    const shake = (room: typeof here, sender: string, secret: string) =>
      room.post(sender, { body: '', fields: ['X-Hook-Secret', secret] });
    const post = (room: typeof here, key: string) =>
      room.post('tasks', { body, fields: ['X-Hook-Signature', signed(key)] });

    assert.equal((await post(here, brought)).status, 401, 'before the handshake there is no secret');
    const answered = await shake(here, 'tasks', brought);
    assert.deepEqual([answered.status, answered.field('x-hook-secret')], [200, brought]);
    assert.equal((await post(here, brought)).status, 200);
    const refused = await shake(there, 'tasks', 'of an attacker');
    assert.deepEqual([refused.status, refused.field('x-hook-secret')], [401, undefined]);
    assert.equal((await shake(there, 'tasks', brought)).status, 200, 'the same handshake may come again');
    assert.equal((await post(there, 'of an attacker')).status, 401);
    assert.equal((await post(there, brought)).status, 200);
    const [message] = await here.received('tasks');
    assert.equal(message?.type, 'task.changed');

    assert.equal((await shake(here, 'given', brought)).status, 401, 'the environment has another secret');
    assert.equal((await shake(here, 'given', 'of the environment')).status, 200);
    assert.equal((await shake(here, 'long', 'x'.repeat(secretCharactersMax + 1))).status, 401);
    assert.equal((await shake(here, 'long', '')).status, 401);
    assert.equal((await shake(here, 'long', 'x'.repeat(secretCharactersMax))).status, 200);
  });
}

test('receive() answers a handshake whose secret the program has', async () => {
  const fields = { 'x-hook-secret': brought };
  const ask = (secrets: readonly string[]) =>
    receive('', fields, { sender: 'asana', secrets, store: memoryStore() });
  const answered = await ask(['old', brought]);
  assert.deepEqual([answered.status, answered.headers], [200, { 'x-hook-secret': brought }]);
  assert.equal((await ask(['old'])).status, 401);
});
