/**
 * Durability: the program is killed at random moments while clients write. After the restart every acknowledged write
 * and its event are there, a write that was not acknowledged happened as a whole or not at all, and no version was given twice.
 * One round, five in the full tier, or as many as COMITY_SOAK_ROUNDS says.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { adminKey } from '../../harness/exchange.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const rounds = roundsOf(1, 3);
const writers = 12;
const path = '/api/v1/articles';

/** What one client knows of its resource: the last acknowledged state, and what it asked for since. */
type Known = {
  readonly id: string;
  /** Body of the last acknowledged write; null: it is gone. */
  acknowledged: number | null;
  rev: number;
  /** Every acknowledged write that left a body. */
  readonly steps: number[];
  /** Sent and not answered: either may be what stands. */
  pending: number | null | undefined;
};

type Event = { readonly type: string; readonly data: { readonly object: Record<string, unknown> } };

const folder = temporaryFolder();
let program: ServerProcess | undefined;
after(async () => {
  await program?.kill();
});

/** Every version that was ever told to a client. */
const versions = new Set<number>();
let steps = 0;

for (let round = 1; round <= rounds; round += 1) {
  test(`round ${round}: what was acknowledged before the kill stands after it`, async () => {
    const running = await spawnServer({ folder });
    program = running;
    const known = Array.from(
      { length: writers },
      (_, index): Known => ({
        id: `r${round}-w${index}`,
        acknowledged: null,
        rev: 0,
        steps: [],
        pending: undefined,
      }),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: writers });
    const writing = known.map((one) => writeUntilKilled(running.port, agent, one));
    // A slow machine may have written nothing yet; the kill then proves nothing.
    while (!known.some(({ steps: made }) => made.length > 1)) await pause(5);
    await pause(Math.random() * 500);
    await running.kill();
    await Promise.all(writing);
    agent.destroy();

    const restarted = await spawnServer({ folder });
    program = restarted;
    const told = await eventsOf(restarted, round);
    for (const one of known) await check(restarted, one, told.get(one.id) ?? []);
    await checkVersion(restarted);
    assert.equal(await restarted.stop(), 0);
  });
}

/** PUT creates, PATCH changes, DELETE removes, one after the other without pause, until the connection breaks. */
async function writeUntilKilled(port: number, agent: Agent, one: Known): Promise<void> {
  for (let turn = 0; ; turn += 1) {
    steps += 1;
    const step = steps;
    const method = one.acknowledged === null ? 'PUT' : turn % 5 === 4 ? 'DELETE' : 'PATCH';
    one.pending = method === 'DELETE' ? null : step;
    const answer = await write(port, agent, method, one.id, step).catch(() => undefined);
    if (answer === undefined) return;
    assert.ok([200, 201].includes(answer.status), `${method} ${answer.status} ${answer.body}`);
    one.acknowledged = one.pending;
    one.pending = undefined;
    if (one.acknowledged !== null) one.steps.push(one.acknowledged);
    if (answer.etag === undefined) continue;
    // PUT and DELETE answers carry no tag (RFC 9110 §9.3.4); versions are told by PATCH.
    const rev = Number(answer.etag.slice(1, -1));
    assert.ok(!versions.has(rev), `the version ${rev} was given twice`);
    versions.add(rev);
    assert.ok(rev > one.rev);
    one.rev = rev;
  }
}

function write(
  port: number,
  agent: Agent,
  method: string,
  id: string,
  step: number,
): Promise<{ status: number; etag: string | undefined; body: string }> {
  const body = method === 'DELETE' ? '' : JSON.stringify({ title: `step ${step}`, published: true });
  return new Promise((resolve, reject) => {
    const headers = {
      Authorization: `Bearer ${adminKey}`,
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      Prefer: 'return=representation',
      ...(method === 'PUT' ? {} : { 'If-Match': '*' }),
    };
    const asked = request(
      { host: '127.0.0.1', port, agent, method, path: `${path}/${id}`, headers },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (part: string) => {
          text += part;
        });
        answer.on('error', reject);
        answer.on('end', () => {
          if (!answer.complete) reject(new Error('cut'));
          else resolve({ status: answer.statusCode ?? 0, etag: answer.headers.etag, body: text });
        });
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

/** The events of the round's resources, by resource, in log order. */
async function eventsOf(running: ServerProcess, round: number): Promise<Map<string, Event[]>> {
  const found = new Map<string, Event[]>();
  let query = `${path.replace('articles', 'events')}?limit=1000&data.object.id[like]=r${round}-%25`;
  for (;;) {
    const answer = await running.send('GET', query);
    assert.equal(answer.status, 200, answer.body.slice(0, 200));
    for (const event of answer.json().items as Event[]) {
      const id = String(event.data.object.id);
      found.set(id, [...(found.get(id) ?? []), event]);
    }
    const cursor = answer.json().nextCursor;
    if (cursor === null) return found;
    query = `${query.split('&cursor=')[0]}&cursor=${cursor}`;
  }
}

async function check(running: ServerProcess, one: Known, told: readonly Event[]): Promise<void> {
  const answer = await running.send('GET', `${path}/${one.id}`);
  const stands = answer.status === 404 ? null : Number(String(answer.json().title).slice('step '.length));
  const possible = one.pending === undefined ? [one.acknowledged] : [one.acknowledged, one.pending];
  assert.ok(
    possible.includes(stands),
    `${one.id} is at ${stands}, acknowledged ${one.acknowledged}, asked ${one.pending}`,
  );

  const [last] = told.slice(-1);
  const state = last === undefined || last.type === 'articles.deleted' ? null : stepOf(last);
  assert.equal(state, stands, `the last event of ${one.id} tells what stands`);
  const emitted = told.filter(({ type }) => type !== 'articles.deleted').map(stepOf);
  assert.deepEqual([...new Set(emitted)], emitted, 'no write has two events');
  for (const step of one.steps) assert.ok(emitted.includes(step), `${one.id} lost the event of step ${step}`);
}

function stepOf({ data }: Event): number {
  return Number(String(data.object.title).slice('step '.length));
}

/** The next version is above all that were ever given. */
async function checkVersion(running: ServerProcess): Promise<void> {
  const made = await running.send('POST', '/api/v1/categories', { json: { name: 'after' } });
  const rev = Number(String(made.headers.etag).slice(1, -1));
  assert.ok([...versions].every((version) => version < rev));
  versions.add(rev);
}
