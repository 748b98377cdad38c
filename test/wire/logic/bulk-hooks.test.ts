/** Hooks within bulk requests (§4.19.2), on both stores: each item has its hook, in one unit or one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('./fixtures/hooks.config.ts', import.meta.url));

describeOnEachStore('bulk requests', async (engine) => {
  const server = await serverOfFile({ config, engine });
  const bulk = (collection: string, json: unknown) =>
    server.send('POST', `/api/v1/${collection}/bulk`, { json });
  const counted = async () => (await server.send('GET', '/api/v1/counters/all')).json().tickets;

  test('run the hook of each item, and commit what the hooks write with the items', async () => {
    const items = Array.from({ length: 30 }, (_, at) => ({ title: `t${at}` }));
    const answer = await bulk('tickets', { items });
    assert.equal(answer.status, 200, answer.body);
    assert.equal(await counted(), 30);
    const [{ id }] = answer.json().items as [{ id: string }];
    const ticket = (await server.send('GET', `/api/v1/tickets/${id}`)).json();
    assert.equal(ticket.by, 'administrator');
    const each = await bulk('tickets', { items, atomic: false });
    assert.ok((each.json().items as { status: number }[]).every(({ status }) => status === 201));
    assert.equal(await counted(), 60, 'none of the units that wrote the same counter was lost');
  });

  test('write nothing if the hook of one item fails', async () => {
    const before = (await server.send('GET', '/api/v1/strange')).body;
    const answer = await bulk('strange', { items: [{ text: 'fine' }, { text: 'bad code' }] });
    assert.equal(answer.status, 500, answer.body);
    assert.equal((await server.send('GET', '/api/v1/strange')).body, before);
  });
});
