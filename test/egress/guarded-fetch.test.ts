import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createDialer } from '../../src/egress/dial.ts';
import { createGuardedFetch, type GuardedFetch } from '../../src/egress/late-http.ts';
import { createEgressPolicy } from '../../src/egress/policy.ts';
import { plainAnswer, type RawReceiver, startRawReceiver } from './raw-receiver.ts';

let receiver: RawReceiver;
const fetches: GuardedFetch[] = [];

before(async () => {
  receiver = await startRawReceiver((socket) => socket.end(plainAnswer(200, '{"keys":[]}')));
});

after(async () => {
  await Promise.all(fetches.map((each) => each.close()));
  await receiver.close();
});

function fetchThrough(egressAllow: string): GuardedFetch {
  const policy = createEgressPolicy({ egressAllow, egressPorts: '443', ownListeners: () => [] });
  const dial = createDialer({ policy, egressDnsMs: 2000, egressConnectMs: 2000 });
  const made = createGuardedFetch(dial, 16_384);
  fetches.push(made);
  return made;
}

const init = () => ({ headers: {}, redirect: 'manual', signal: AbortSignal.timeout(5000) }) as const;

test('fetches what the guard lets through', async () => {
  const answer = await fetchThrough('127.0.0.0/8').fetch(`http://127.0.0.1:${receiver.port}/keys`, init());
  assert.deepEqual([answer.status, await answer.text()], [200, '{"keys":[]}']);
});

test('reaches no address that the guard refuses', async () => {
  const before = receiver.connections();
  await assert.rejects(fetchThrough('').fetch(`http://127.0.0.1:${receiver.port}/keys`, init()));
  assert.equal(receiver.connections(), before);
});
