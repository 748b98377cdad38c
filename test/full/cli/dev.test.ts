/** `comity dev` as a process: it follows the files that the configuration imports, over one data folder and one port. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { spawnCommand } from '../../harness/command-line.ts';
import { linkPackage, temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

/** How long a server in production waits for a request: the default of COMITY_DRAIN_MS. */
const productionDrainMs = 10_000;

const configuration = `
import { collection, defineConfig, Type } from 'comity';
import { check } from './rules.ts';

export default defineConfig({
  collections: {
    tasks: collection({
      schema: Type.Object({ title: Type.String() }),
      access: { read: 'public', create: 'public' },
      hooks: { beforeWrite: ({ after }) => check(after.title) },
    }),
  },
  subscribers: {
    faulty: {
      events: ['tasks.created'],
      schedule: [3600],
      async handler({ event, resources }) {
        if (event.data.object.title === 'refused') await resources.tasks.create({});
        if (event.data.object.title === 'three') check('one');
      },
    },
  },
});
`;

const rules = (forbidden: string): string => `export function check(title: string): void {
  if (title === '${forbidden}') throw new Error('the rule broke');
}
`;

test('restarts upon a change of what the configuration imports, and shows mistakes and failures', async () => {
  const folder = temporaryFolder();
  linkPackage(folder);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'rules.ts'), rules('one'));
  writeFileSync(join(folder, 'comity.config.ts'), configuration);
  writeFileSync(join(folder, '.env'), 'COMITY_PORT=0\nCOMITY_ADMIN_KEY=sk_of_the_file_of_variables\n');
  const session = spawnCommand(['dev'], {}, { cwd: folder });
  const starts = (): number => session.stdout().split('comity listening on').length - 1;
  await until(() => starts() === 1, 'the first process listens');
  const url = /http:\S+/.exec(session.stdout())?.[0] ?? '';
  const post = (title: string): Promise<Response> =>
    fetch(`${url}/api/v1/tasks`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ title }),
    });
  assert.equal((await post('one')).status, 500);
  await session.told('rules.ts:2:');
  await session.told('POST /api/v1/tasks 500 internal');
  assert.equal((await post('two')).status, 201);
  assert.equal((await post('three')).status, 201);
  await session.told('subscriber:faulty failed, again at ');
  await session.told('Error: the rule broke (rules.ts:2:');
  assert.equal((await post('refused')).status, 201);
  await session.told('(attempt 1, refused): ');
  await session.told('comity.config.ts:19:');
  const users = await fetch(`${url}/api/v1/users`, {
    headers: { 'X-API-Key': 'sk_of_the_file_of_variables' },
  });
  assert.equal(users.status, 200);
  await session.told('GET /api/v1/users 200');

  writeFileSync(join(folder, 'rules.ts'), rules('nothing'));
  await until(() => starts() === 2, 'the second process listens');
  assert.equal((await post('one')).status, 201, 'the port and the rule are those of now');

  writeFileSync(join(folder, 'comity.config.ts'), configuration.replace('schema:', 'shema:'));
  await session.told('collection tasks');
  await session.told('waiting for a change');
  writeFileSync(join(folder, 'comity.config.ts'), configuration);
  await until(() => starts() === 3, 'the third process listens');
  const list = (await (await fetch(`${url}/api/v1/tasks`)).json()) as { items: unknown[] };
  assert.equal(list.items.length, 4, 'the data stays');

  session.process.kill('SIGTERM');
  assert.equal((await session.ended).code, 0);
});

test('restarts without waiting for a request that hangs, and at once where the configuration hangs', async (t) => {
  const folder = temporaryFolder();
  linkPackage(folder);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const write = (text: string): void => writeFileSync(join(folder, 'deep.ts'), text);
  write('export const version = 1;');
  writeFileSync(
    join(folder, 'comity.config.ts'),
    `
    import { action, defineConfig, Type } from 'comity';
    import { version } from './deep.ts';

    const handler = () => new Promise<{ version: number }>((answer) => version === 0 && answer({ version }));
    export default defineConfig({
      collections: {},
      actions: { hang: action({ method: 'GET', path: '/hang', access: 'public', output: Type.Object({}), handler }) },
    });`,
  );
  const session = spawnCommand(['dev', '--port', '0'], {}, { cwd: folder });
  t.after(() => session.process.kill('SIGTERM'));
  const starts = (): number => session.stdout().split('comity listening on').length - 1;
  await until(() => starts() === 1, 'the first process listens');
  const url = /http:\S+/.exec(session.stdout())?.[0] ?? '';
  async function restartMs(version: number): Promise<number> {
    const before = starts();
    const startedAt = performance.now();
    write(`export const version = ${version};`);
    await until(() => starts() === before + 1, 'the next process listens');
    return performance.now() - startedAt;
  }
  const idleMs = await restartMs(2);
  const hanging = fetch(`${url}/api/v1/hang`).catch(() => 'cut');
  await pause(100);
  const busyMs = await restartMs(3);
  t.diagnostic(`restarts in ${idleMs.toFixed()} ms idle, ${busyMs.toFixed()} ms with a request under way`);
  assert.ok(
    busyMs < idleMs + productionDrainMs / 2,
    `${idleMs} ms idle, ${busyMs} ms with a request under way`,
  );
  assert.equal(await hanging, 'cut');

  write('await new Promise(() => {});\nexport const version = 1;');
  await session.told('the configuration has not finished loading after 2 s');
  const { code, stderr } = await spawnCommand(['check'], {}, { cwd: folder }).ended;
  assert.equal(code, 2);
  assert.match(stderr, /comity\.config\.ts does not finish loading: it, or a file that it imports, awaits/);
  write('export const version = 1;\nthrow new Error("broken at import");');
  await session.told('waiting for a change');
  assert.equal(session.stderr().split('comity: deep.ts:2: broken at import').length, 2);
  assert.ok((await restartMs(4)) < idleMs + productionDrainMs / 2);
  session.process.kill('SIGTERM');
  assert.equal((await session.ended).code, 0);
});
