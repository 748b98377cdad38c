/** Budgets of tunnels at their edges (§8): places of one and of all, octets of a day, and that tunnels which use them up are cut. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryBounds } from '../../src/memory/bounds.ts';
import { createBudget } from '../../src/tunnel/admission.ts';
import { openStand, openTunnel, readToEnd, sendConnect, startDestination, startRig } from './rig.ts';

const hourMs = 3_600_000;
const noonMs = Date.UTC(2030, 5, 1, 12);
const unlimited = { tunnelsMax: 100, tunnelsPerPrincipalMax: 100, tunnelBytesPerDayMax: 0 };

const stand = await openStand();

function entered(entry: ReturnType<ReturnType<typeof createBudget>['enter']>) {
  assert.ok(entry.ok);
  return entry.place;
}

test('forgets what principals passed who have no tunnel open, when there are too many of them', () => {
  const budget = createBudget(
    { ...unlimited, tunnelsMax: 1_000_000, tunnelBytesPerDayMax: 10 },
    () => noonMs,
  );
  const spend = (principal: string) => {
    const place = entered(budget.enter(principal));
    place.account.spend(10);
    return place;
  };
  const open = spend('with a tunnel');
  spend('without one').giveBack();
  assert.equal(budget.enter('without one').ok, false);
  for (let at = 0; at < memoryBounds.tunnelLedgers.entries; at += 1) spend(`principal ${at}`).giveBack();
  assert.equal(budget.enter('without one').ok, true);
  assert.equal(budget.enter('with a tunnel').ok, false);
  open.giveBack();
});

test('gives a principal as many places as it may have, and one again when one is given back', () => {
  const budget = createBudget({ ...unlimited, tunnelsPerPrincipalMax: 2 }, () => noonMs);
  const first = entered(budget.enter('a'));
  entered(budget.enter('a'));
  assert.deepEqual(budget.enter('a'), { ok: false, reason: 'principal', retryAfterSeconds: 5 });
  entered(budget.enter('b'));
  first.giveBack();
  first.giveBack();
  assert.equal(budget.count(), 2);
  entered(budget.enter('a'));
  assert.equal(budget.enter('a').ok, false);
});

test('gives all principals together as many places as there are, and none where there are none', () => {
  const budget = createBudget({ ...unlimited, tunnelsMax: 1 }, () => noonMs);
  entered(budget.enter('a'));
  assert.deepEqual(budget.enter('b'), { ok: false, reason: 'all', retryAfterSeconds: 5 });
  assert.equal(createBudget({ ...unlimited, tunnelsMax: 0 }, () => noonMs).enter('a').ok, false);
});

test('counts octets of all tunnels of a principal, until the day ends', () => {
  let nowMs = noonMs;
  const budget = createBudget({ ...unlimited, tunnelBytesPerDayMax: 100 }, () => nowMs);
  const one = entered(budget.enter('a'));
  const other = entered(budget.enter('a'));
  assert.equal(one.account.spend(60), true);
  assert.equal(other.account.spend(39), true);
  assert.equal(other.account.spend(1), false);
  assert.deepEqual(budget.enter('a'), { ok: false, reason: 'bytes', retryAfterSeconds: 12 * 3600 });
  assert.equal(budget.enter('b').ok, true);
  one.giveBack();
  other.giveBack();
  assert.equal(budget.enter('a').ok, false);
  nowMs += 12 * hourMs;
  assert.equal(budget.enter('a').ok, true);
});

test('counts what a tunnel carries after midnight to the new day', () => {
  let nowMs = noonMs;
  const budget = createBudget({ ...unlimited, tunnelBytesPerDayMax: 100 }, () => nowMs);
  const { account } = entered(budget.enter('a'));
  assert.equal(account.spend(99), true);
  nowMs += 12 * hourMs;
  assert.equal(account.spend(99), true);
  assert.equal(account.spend(1), false);
});

test('cuts the tunnel that uses up the octets of the day, and refuses the next until it ends', async (context) => {
  const port = await startDestination(context, (socket) => void socket.pipe(socket));
  const rig = await startRig(context, stand, { settings: { tunnelBytesPerDayMax: 10 }, clock: () => noonMs });
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  socket.write('12345');
  assert.equal((await readToEnd(socket)).how, 'ECONNRESET');
  const closed = await rig.told('tunnel-closed');
  assert.deepEqual([closed.why, closed.sentBytes, closed.receivedBytes], ['bytes', 5, 5]);
  const fields = [`Proxy-Authorization: Bearer ${rig.key}`];
  const { answer } = await sendConnect(context, rig.port, `127.0.0.1:${port}`, { fields });
  assert.equal(answer.status, 429);
  assert.equal(answer.fields.get('retry-after'), String(12 * 3600));
  assert.match(answer.rest, /tunnel_bytes_exhausted/);
});

test('refuses a tunnel too many with 429 for a principal and 503 for the program', async (context) => {
  const port = await startDestination(context, (socket) => void socket.pipe(socket));
  for (const [setting, status, code] of [
    ['tunnelsPerPrincipalMax', 429, 'tunnels_exhausted'],
    ['tunnelsMax', 503, 'unavailable'],
  ] as const) {
    const rig = await startRig(context, stand, { settings: { [setting]: 1 } });
    const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
    const fields = [`Proxy-Authorization: Bearer ${rig.key}`];
    const { answer } = await sendConnect(context, rig.port, `127.0.0.1:${port}`, { fields });
    assert.equal(answer.status, status);
    assert.match(answer.rest, new RegExp(code));
    assert.match(answer.fields.get('proxy-status') ?? '', /connection_limit_reached/);
    socket.end();
    await readToEnd(socket);
    await rig.told('tunnel-closed');
    const again = await openTunnel(context, rig, `127.0.0.1:${port}`);
    again.socket.destroy();
  }
});
