/** What can be read of an endpoint and of a delivery beside themselves (§6.12, §6.13): health, and the request. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import { eventually } from '../../harness/until.ts';
import { openPortal } from '../portal/portal-client.ts';
import { attempted, makeEndpoint, postEvent, startPair, stopPair } from './program-with-receiver.ts';

const base = '/api/v1';
const pair = await startPair();
const { program, receiver } = pair;
after(() => stopPair(pair));

test('tells since when an endpoint fails and until when its secrets sign, to those who may read it', async () => {
  const { id } = await makeEndpoint(pair, `${receiver.url}/status/500`, { tenant: 'acme' });
  const path = `${base}/endpoints/${id}/health`;
  const healthy = await program.send('GET', path);
  assert.deepEqual(healthy.json(), {
    ...{ status: 'healthy', failingSince: null, failures: 0, warnedAt: null, disablesAt: null },
    secrets: [{ until: null }],
  });
  const rotated = await program.send('POST', `${base}/endpoints/${id}/rotate-secret`, {
    json: { overlapSeconds: 60 },
  });
  assert.equal((await program.send('POST', `${base}/endpoints/${id}/test`)).status, 202);
  await program.send('POST', `${base}/events`, {
    json: { type: 'invoice.paid', tenant: 'acme', data: { object: {} } },
  });
  const failing = await eventually(async () => {
    const found = await program.send('GET', path);
    return found.json().status === 'failing' ? found : undefined;
  }, 'the endpoint does not fail');
  const { failingSince, disablesAt, secrets } = failing.json() as {
    failingSince: string;
    disablesAt: string;
    secrets: readonly { until: string | null }[];
  };
  assert.equal(Date.parse(disablesAt) - Date.parse(failingSince), 5 * 86_400_000);
  assert.equal(secrets.length, 2);
  assert.ok(Date.parse(secrets[1]?.until ?? '') > Date.now());
  assert.ok(!failing.body.includes(String(rotated.json().secret)));
  const own = await openPortal(program, 'acme');
  assert.equal((await own.ask('GET', path)).status, 200);
  const other = await openPortal(program, 'other');
  assert.equal((await other.ask('GET', path)).status, 404);
  assert.equal((await program.send('GET', path, { anonymous: true })).status, 401);
  assert.equal((await program.send('GET', `${base}/endpoints/ep_none/health`)).status, 404);
  await program.send('PATCH', `${base}/endpoints/${id}`, { json: { status: 'disabled' } });
  assert.equal((await program.send('GET', path)).json().status, 'disabled');
});

for (const scheme of ['standard', 'timestamped', 'plain']) {
  test(`shows the request of a delivery as it was sent, without signatures and header values: ${scheme}`, async () => {
    const headers = { 'X-Shop': 'hidden value' };
    const { id } = await makeEndpoint(pair, `${receiver.url}/${scheme}`, {
      scheme,
      headers,
      events: ['order.*'],
    });
    const event = await postEvent(program, 'order.shipped', { id: 'ord_1', note: 'äöü' });
    const { delivery } = await attempted(program, event, id);
    assert.ok((delivery as Delivery).lastLatencyMs !== undefined);
    const path = `${base}/deliveries/${delivery.id}/request`;
    const shown = await program.send('GET', path);
    assert.equal(shown.status, 200, shown.body);
    const request = shown.json() as { url: string; headers: readonly [string, string][]; content: string };
    const received = receiver.received.find((each) => each.path === `/${scheme}`);
    assert.equal(request.content, received?.body);
    assert.equal(request.url, `${receiver.url}/${scheme}`);
    for (const [name, value] of request.headers) {
      const sent = received?.headers[name.toLowerCase()];
      assert.ok(sent !== undefined, name);
      if (value !== '********') assert.equal(value, sent, name);
    }
    assert.ok(!shown.body.includes('hidden value'));
    await program.send('DELETE', `${base}/endpoints/${id}`);
    assert.equal((await program.send('GET', path)).status, 409);
  });
}
