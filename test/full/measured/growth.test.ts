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
import { startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { servedPaths } from '../../openapi/fixture.ts';
import { assertLoopFree, inOneRunOf, startAttacked } from '../attack/attacked-program.ts';
import { bounded } from './bounded-routes.ts';
import {
  type Ask,
  type Attack,
  inboxSecret,
  type Known,
  many,
  attacks as otherAttacks,
} from './growth-attacks.ts';
import { boundedFileRoutes, fileAttacks } from './growth-file-attacks.ts';

const config = fileURLToPath(new URL('../attack/fixtures/growth.config.ts', import.meta.url));
const env = {
  ...{ COMITY_RATE_LIMIT_READS: '0', COMITY_RATE_LIMIT_WRITES: '0' },
  ...{ COMITY_EGRESS_ALLOW: '127.0.0.0/8', INBOX_WEBHOOK_SECRET: inboxSecret },
};
const attacks = [...otherAttacks, ...fileAttacks];
const base = '/api/v1';
/** One answer of its health may take this many times as long as the others; seen: 16 to 90 ms, and 180 among answers of 8 MB. */
const outlierFactor = 2;
/**
 * Health has a connection of its own, which is accepted, read and answered in turns of the event loop. While 512 uploads arrive as fast as
 * they can, each turn reads from all of them: none is long by the program's own log (at most 81 ms), and health was seen to take 57 to 600 ms
 * of them once, and up to 260 ms otherwise. What is judged closely there is the longest turn.
 */
const receivingFactors = [6, 2] as const;
/** How long the clients wait for their answers. */
const patienceMs = 4000;

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
  return { ids, parent, own: [] };
}

const upgrade = {
  ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
  ...{ 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Protocol': 'comity.v1' },
};

/** A text frame of less than 64 KiB, masked by zeros. */
function maskedText(text: string): Buffer {
  const { length } = text;
  const head = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([0x81, ...head, 0, 0, 0, 0]), Buffer.from(text)]);
}

function askOf({ send }: RunningServer): Ask {
  return async (method, path, options) => {
    const answer = await send(method, `${base}/${path}`, options);
    assert.ok(answer.status < 300, `${method} ${path} was ${answer.status}: ${answer.body.slice(0, 200)}`);
    return answer.body === '' ? {} : answer.json();
  };
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
    const body = of.content?.(known, index) ?? Buffer.from(json);
    const fields = Object.entries({
      ...{ Host: 'a', Authorization: `Bearer ${adminKey}`, Connection: 'close' },
      ...{ 'Content-Type': 'application/json', 'Content-Length': String(body.length) },
      ...(of.frames === undefined ? {} : upgrade),
      ...(typeof of.headers === 'function' ? of.headers(body, known) : of.headers),
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(`${method} ${base}/${path} HTTP/1.1\r\n${fields.join('')}\r\n`);
    socket.write(body);
    const answered = new Promise<void>((resolve) => {
      socket.once('data', (octets: Buffer) => {
        statuses[index] = Number(octets.toString('latin1', 9, 12));
        for (const frame of of.frames?.(known) ?? []) socket.write(maskedText(frame));
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

/** `METHOD pattern` below the base, with `{collection}` for those of the declaration, which all have the same routes. */
async function routesOf(server: RunningServer): Promise<readonly string[]> {
  const paths: Described = await servedPaths(server);
  const routes = Object.entries(paths).flatMap(([path, { additionalOperations = {}, ...operations }]) => {
    const below = path.startsWith(`${base}/`) ? path.slice(base.length) : path;
    const [, first = '', ...rest] = below.split('/');
    const pattern = declared.has(first) ? ['{collection}', ...rest].join('/') : below;
    return [...Object.keys(operations), ...Object.keys(additionalOperations)]
      .filter((method) => methods.has(method.toUpperCase()))
      .map((method) => `${method.toUpperCase()} ${pattern}`);
  });
  return [...new Set(routes)];
}

type Described = Readonly<Record<string, { readonly additionalOperations?: object }>>;

const methods = new Set(['GET', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE']);
const declared = new Set('words plain data texts links parents children kept shown hooked filed'.split(' '));

/** True if the target of an attack, whose ids are of no document here, is of the route. */
function isOf(route: string, { target, standsFor = [] }: Attack): boolean {
  if (standsFor.includes(route)) return true;
  const [method = '', pattern = ''] = route.split(' ');
  const [asked, path = ''] = target(0, { ids: ['id'], parent: 'id', own: ['id'] }).split(' ');
  const named = pattern.replace('{collection}', `(${[...declared].join('|')})`).replace(/^\//, '');
  const expression = named.replaceAll(/\{\w+\}/g, '(id|reads|often)').replaceAll('.', '\\.');
  return asked === method && new RegExp(`^${expression}$`).test(path.split('?')[0] ?? '');
}

const provider = {
  COMITY_OAUTH_FORGE_AUTHORIZATION_URL: 'https://forge.example/authorize',
  COMITY_OAUTH_FORGE_TOKEN_URL: 'https://forge.example/token',
  COMITY_OAUTH_FORGE_USERINFO_URL: 'https://api.forge.example/me',
  COMITY_OAUTH_FORGE_CLIENT_ID: 'growth',
  COMITY_OAUTH_FORGE_CLIENT_SECRET: 'from-the-forge',
};

test('each route of the program is attacked, or has a reason why it makes no more than it reads', async () => {
  const program = await startServer({ config, env: { ...env, ...provider } });
  try {
    const routes = await routesOf(program);
    const reasons = [...bounded, boundedFileRoutes].flatMap((each) => each.routes);
    const attacked = routes.filter((route) => attacks.some((each) => isOf(route, each)));
    assert.deepEqual(
      routes.filter((route) => !attacked.includes(route) && !reasons.includes(route)),
      [],
      'without either',
    );
    assert.deepEqual(
      reasons.filter((route) => !routes.includes(route) || attacked.includes(route)),
      [],
      'no route of the program, or attacked as well',
    );
  } finally {
    await program.stop();
  }
});

const chosen = attacks.filter(({ isWorst }) => isWorst === true || process.env.COMITY_TEST_TIER !== 'full');

for (const each of chosen) {
  test(`${each.atOnce} ${each.name} leave the program unharmed`, (context) =>
    inOneRunOf(context, async () => {
      const attacked = await startAttacked(context, { config, env: { ...env, ...each.env } });
      const receiver = each.prepare === undefined ? undefined : await startDeliveryReceiver(context);
      const filled = await fill(attacked.program);
      const own = await each.prepare?.(askOf(attacked.program), filled, receiver?.url ?? '');
      const known = { ...filled, own: own ?? [] };
      await attacked.health();
      const statuses = await attack(attacked.program.port, each, known);
      context.diagnostic([...statuses].map(([status, count]) => `${count} × ${status}`).join(', '));
      assert.ok(!statuses.has(500), 'none fails');
      await attacked.assertUnharmed(...(each.receives === true ? receivingFactors : [outlierFactor]));
      if (each.receives === true) await assertLoopFree(attacked, each.name);
    }));
}
