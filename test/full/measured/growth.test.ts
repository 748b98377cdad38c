/**
 * An attacker's list of the requests that become more than they are: each is sent many times at once to a program with 512 MiB by
 * clients that leave after a while. It lives, and health is answered within the bound of attacked-program.ts: 100 ms of processor time and
 * three times what the idle twin takes, and once twice that. That probes do not wait for the connections of the others is the
 * subject of new-connections.test.ts.
 * The full tier sends the worst of them; `npm test -- test/full/measured/growth.test.ts` sends all.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { adminKey } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/growth.config.ts', import.meta.url));
const env = { COMITY_RATE_LIMIT_READS: '0', COMITY_RATE_LIMIT_WRITES: '0' };
const base = '/api/v1';
/** One answer of its health may take this many times as long as the others; seen: 16 to 90 ms, and 180 among answers of 8 MB. */
const outlierFactor = 2;
/** How long the clients wait for their answers. */
const patienceMs = 4000;

type Attack = {
  readonly name: string;
  readonly atOnce: number;
  /** `METHOD path` */
  readonly target: (index: number, known: Known) => string;
  readonly json?: (known: Known, index: number) => unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The clients read nothing. */
  readonly isSlow?: true;
  /** Part of the full tier: it ended the program, or came nearest to it. */
  readonly isWorst?: true;
};

/** What is stored before. */
type Known = { readonly ids: readonly string[]; readonly parent: string };

const many = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index));
const bulk = { items: many(1000, () => ({ title: 'b' })) };
/** Another query each time, so that no cache knows its page. */
const unlike = (target: string) => (index: number) =>
  `${target}&createdAt[gt]=${1000 + index}-01-01T00:00:00Z`;
const attacks: readonly Attack[] = [
  { name: 'bulks with words', atOnce: 400, isWorst: true, target: () => 'POST words/bulk', json: () => bulk },
  { name: 'bulks', atOnce: 1000, isWorst: true, target: () => 'POST plain/bulk', json: () => bulk },
  {
    name: 'bulks of single units',
    atOnce: 1000,
    target: () => 'POST plain/bulk',
    json: () => ({ ...bulk, atomic: false }),
  },
  {
    name: 'bulks that are operations',
    atOnce: 1000,
    target: () => 'POST plain/bulk',
    json: () => bulk,
    headers: { Prefer: 'respond-async' },
  },
  { name: 'lists', atOnce: 1000, target: unlike('GET texts?limit=1000') },
  { name: 'lists that nobody reads', atOnce: 1000, target: unlike('GET texts?limit=1000'), isSlow: true },
  {
    name: 'compressed lists',
    atOnce: 1000,
    target: unlike('GET texts?limit=1000'),
    headers: { 'Accept-Encoding': 'br' },
  },
  { name: 'inclusions', atOnce: 1000, target: unlike('GET links?limit=500&expand=docId') },
  {
    name: 'groups',
    atOnce: 1000,
    target: () => 'QUERY texts',
    json: (_, index) => ({
      ...{ groupBy: ['text'], aggregate: { count: true } },
      filter: { id: { ne: `${index}` } },
    }),
  },
  { name: 'searches', atOnce: 1000, target: unlike('GET words?limit=1000&q=b') },
  {
    name: 'deletions of dependants',
    atOnce: 100,
    isWorst: true,
    target: (_, { parent }) => `DELETE parents/${parent}`,
  },
  {
    name: 'bulk deletions',
    atOnce: 100,
    isWorst: true,
    target: () => 'POST texts/bulk-delete',
    json: ({ ids }) => ({ ids }),
  },
  {
    name: 'answers of 8 MB that nobody reads',
    atOnce: 1000,
    isWorst: true,
    target: () => 'POST wide',
    isSlow: true,
  },
  { name: 'actions that wait with a page', atOnce: 1000, target: () => 'POST waits' },
  { name: 'streams of an action', atOnce: 1000, isWorst: true, target: () => 'GET export' },
];

async function fill(program: RunningServer): Promise<Known> {
  const make = async (collection: string, items: readonly object[]): Promise<readonly string[]> => {
    const made = await program.send('POST', `${base}/${collection}/bulk`, { json: { items } });
    assert.equal(made.status, 200, made.body.slice(0, 200));
    return (made.json().items as { id: string }[]).map(({ id }) => id);
  };
  const ids: string[] = [];
  for (let part = 0; part < 10; part += 1) {
    const texts = many(100, (index) => ({ text: `${part} ${index} `.padEnd(5000, 'x') }));
    ids.push(...(await make('texts', texts)));
  }
  await make(
    'links',
    ids.map((docId) => ({ docId })),
  );
  const [parent = ''] = await make('parents', [{ title: 'one' }]);
  const children = many(900, (index) => ({ parentId: parent, text: `${index}`.padEnd(1000, 'x') }));
  await make('children', children);
  return { ids, parent };
}

/** @returns the number of answers by status; 0: none within the patience */
async function attack(
  port: number,
  { atOnce, target, ...of }: Attack,
  known: Known,
): Promise<ReadonlyMap<number, number>> {
  const statuses: number[] = many(atOnce, () => 0);
  const clients = many(atOnce, (index) => {
    const [method = '', path = ''] = target(index, known).split(' ');
    const json = of.json === undefined ? '' : JSON.stringify(of.json(known, index));
    const body = Buffer.from(json);
    const fields = Object.entries({
      ...{ Host: 'a', Authorization: `Bearer ${adminKey}`, Connection: 'close' },
      ...{ 'Content-Type': 'application/json', ...of.headers, 'Content-Length': String(body.length) },
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(`${method} ${base}/${path} HTTP/1.1\r\n${fields.join('')}\r\n`);
    socket.write(body);
    const answered = new Promise<void>((resolve) => {
      socket.once('data', (octets: Buffer) => {
        statuses[index] = Number(octets.toString('latin1', 9, 12));
        if (of.isSlow !== true) return void socket.resume();
        socket.pause();
        resolve();
      });
      socket.once('close', () => resolve());
    });
    return { socket, answered };
  });
  await Promise.race([
    Promise.all(clients.map(({ answered }) => answered)),
    new Promise((resolve) => void setTimeout(resolve, patienceMs).unref()),
  ]);
  for (const { socket } of clients) socket.destroy();
  return new Map(
    Object.entries(Object.groupBy(statuses, String)).map(([status, all]) => [
      Number(status),
      all?.length ?? 0,
    ]),
  );
}

const chosen = attacks.filter(({ isWorst }) => isWorst === true || process.env.COMITY_TEST_TIER !== 'full');

for (const each of chosen) {
  test(`${each.atOnce} ${each.name} leave the program unharmed`, async (context) => {
    const attacked = await startAttacked(context, { config, env });
    const known = await fill(attacked.program);
    await attacked.health();
    const statuses = await attack(attacked.program.port, each, known);
    context.diagnostic([...statuses].map(([status, count]) => `${count} × ${status}`).join(', '));
    assert.ok(!statuses.has(500), 'none fails');
    await attacked.assertUnharmed(outlierFactor);
  });
}
