/** What a resend by hand does in the running program (§3): it goes out at once, and the schedule stays as it was. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import {
  attempted,
  items,
  makeEndpoint,
  type Pair,
  postEvent,
  startPair,
  stopPair,
} from './program-with-receiver.ts';

const base = '/api/v1';
const longS = 3600;

let pair: Pair;

before(async () => {
  pair = await startPair({
    env: {
      COMITY_WEBHOOK_TIMEOUT_MS: '30000',
      COMITY_WEBHOOK_LEASE_MS: '60000',
    },
    bounds: {
      webhookResendsInFlightMax: 2,
      webhookBreakerFailuresMax: 1,
      webhookBreakerSeconds: longS,
      webhookBreakerSecondsMax: longS,
    },
  });
});

after(() => stopPair(pair));

async function resend({ id }: Delivery): Promise<void> {
  const resent = await pair.program.send('POST', `${base}/deliveries/${id}/resend`);
  assert.equal(resent.status, 202, resent.body);
}

const arrivals = (path: string) => pair.receiver.received.filter((each) => each.path === path).length;

for (const [path, why] of [
  ['/status/500', 'the breaker leaves the endpoint alone'],
  [`/retry-after/${longS}`, 'the endpoint asked to wait'],
] as const) {
  test(`sends at once while ${why}, time and again, and leaves the scheduled retry where it was`, async () => {
    const type = `resend${path.replaceAll(/[^a-z]/g, '')}.made`;
    const { id } = await makeEndpoint(pair, `${pair.receiver.url}${path}`, { events: [type] });
    const event = await postEvent(pair.program, type);
    const first = (await attempted(pair.program, event, id)).delivery;
    for (const attemptCount of [2, 3, 4]) {
      await resend(first);
      const { delivery } = await attempted(pair.program, event, id, attemptCount);
      assert.deepEqual(
        [delivery.status, delivery.nextAttemptAt, delivery.dueAt, delivery.scheduledAttemptCount],
        ['not_delivered', first.nextAttemptAt, first.nextAttemptAt, 1],
      );
    }
    const { attempts } = await attempted(pair.program, event, id, 4);
    assert.deepEqual(
      attempts.map(({ trigger }) => trigger),
      ['automatic', 'manual', 'manual', 'manual'],
    );
  });
}

test('has so many resends to one endpoint under way at once, though its window is full', async () => {
  const url = `${pair.receiver.url}/hang`;
  const { id } = await makeEndpoint(pair, url, { events: ['held.*'], maxInFlight: 1 });
  for (let count = 0; count < 4; count += 1) await postEvent(pair.program, 'held.made');
  await pair.receiver.until(() => arrivals('/hang') === 1);
  const held = await items<Delivery>(pair.program, `${base}/deliveries?endpointId=${id}&sort=createdAt`);
  for (const delivery of held.slice(1)) await resend(delivery);
  await pair.receiver.until(() => arrivals('/hang') === 3);
  // Whatever would go out at once has gone out by then.
  const { id: other } = await makeEndpoint(pair, `${pair.receiver.url}/ok`, { events: ['other.*'] });
  await attempted(pair.program, await postEvent(pair.program, 'other.made'), other);
  assert.equal(arrivals('/hang'), 3);
});

test('keeps connections for one endpoint while another fills those of the same host and port', async () => {
  const hanging = `${pair.receiver.url}/hang/all`;
  const flooded = await makeEndpoint(pair, hanging, { events: ['flood.*'], maxInFlight: 1024 });
  const { id } = await makeEndpoint(pair, `${pair.receiver.url}/ok/beside`, { events: ['beside.*'] });
  await Promise.all(Array.from({ length: 100 }, () => postEvent(pair.program, 'flood.made')));
  // Three hang from the test before.
  await pair.receiver.until(() => arrivals('/hang/all') >= 61);
  await attempted(pair.program, await postEvent(pair.program, 'beside.made'), id);
  const held = await items<Delivery>(pair.program, `${base}/deliveries?endpointId=${flooded.id}`);
  assert.ok(
    held.length > 0 && held.every(({ attemptCount }) => attemptCount === 0),
    'it waited for an attempt that hangs to time out',
  );
});
