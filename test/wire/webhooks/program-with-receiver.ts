/** The real program and a receiver on this machine that it may send to, and the requests that tests of deliveries make. */
import assert from 'node:assert/strict';
import { type Receiver, startReceiver } from '../../../examples/receiver/start-receiver.ts';
import type { Delivery } from '../../../src/model/delivery.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import type { Attempt } from '../../../src/webhooks/sending/settle-delivery.ts';
import { type RunningServer, type StartOptions, startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';

const base = '/api/v1';

/** What the program needs to send to this machine. */
export const localEgress = { COMITY_EGRESS_ALLOW: '127.0.0.0/8' };

export type Pair = { readonly program: RunningServer; readonly receiver: Receiver };

export async function startPair(options: StartOptions = {}): Promise<Pair> {
  const receiver = await startReceiver();
  const program = await startServer({ ...options, env: { ...localEgress, ...options.env } });
  return { program, receiver };
}

/** The receiver goes first: what it never answered would keep the program until its bound. */
export async function stopPair({ program, receiver }: Pair): Promise<void> {
  await receiver.close();
  await program.stop();
}

/** Makes an endpoint, and the receiver trust its secret. */
export async function makeEndpoint(
  { program, receiver }: Pair,
  url: string,
  members: Readonly<Record<string, unknown>> = {},
): Promise<Endpoint> {
  const json = { url, events: ['*'], ...members };
  const made = await program.send('POST', `${base}/endpoints`, { json });
  assert.equal(made.status, 201, made.body);
  const { secret, ...endpoint } = made.json() as unknown as Endpoint & { readonly secret: string };
  receiver.trust(secret);
  return endpoint;
}

/** @returns the id of the event */
export async function postEvent(program: RunningServer, type: string, object: unknown = {}): Promise<string> {
  const posted = await program.send('POST', `${base}/events`, { json: { type, data: { object } } });
  assert.equal(posted.status, 202, posted.body);
  return String(posted.json().id);
}

/** Waits until the event's delivery to the endpoint has been tried so often. */
export async function attempted(
  program: RunningServer,
  eventId: string,
  endpointId: string,
  attemptCount = 1,
): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] }> {
  const path = `${base}/deliveries?eventId=${eventId}&endpointId=${endpointId}`;
  const delivery = await eventually(async () => {
    const [found] = await items<Delivery>(program, path);
    return found !== undefined && found.attemptCount >= attemptCount ? found : undefined;
  }, `${eventId} was not tried ${attemptCount} times at ${endpointId}`);
  return {
    delivery,
    attempts: await items<Attempt>(program, `${base}/deliveries/${delivery.id}/attempts`),
  };
}

export async function items<T>(program: RunningServer, path: string): Promise<readonly T[]> {
  const answer = await program.send('GET', path);
  assert.equal(answer.status, 200, answer.body);
  return answer.json().items as readonly T[];
}

/** Every item of a list, page by page. */
export async function allItems<T>(program: RunningServer, path: string): Promise<readonly T[]> {
  const found: T[] = [];
  let from = '';
  for (;;) {
    const answer = await program.send('GET', `${path}&limit=1000${from}`);
    assert.equal(answer.status, 200, answer.body);
    found.push(...(answer.json().items as readonly T[]));
    const cursor = answer.json().nextCursor;
    if (cursor === null) return found;
    from = `&cursor=${String(cursor)}`;
  }
}
