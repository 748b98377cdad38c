/** `comity users` and the fields that an application declares for accounts. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Outcome, runCommand } from '../harness/command-line.ts';
import { adminKey as key } from '../harness/exchange.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';

const config = fileURLToPath(new URL('../wire/auth/fixtures/agency.config.ts', import.meta.url));
let server: RunningServer;

before(async () => {
  server = await startServer({ config });
});

after(() => server.stop());

function users(...args: readonly string[]): Promise<Outcome> {
  return runCommand(['users', ...args], { COMITY_URL: server.url, COMITY_ADMIN_KEY: key });
}

function jsonOf({ code, stdout, stderr }: Outcome): Record<string, unknown> {
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('makes an account with fields of the application, shows and changes them', async () => {
  const fields = ['--field', 'role=agent', 'rating:=3', 'phone=a=b'];
  const made = jsonOf(await users('create', 'ada@shop.example', '--no-password', '--json', ...fields));
  assert.deepEqual([made.role, made.rating, made.phone, made.locale], ['agent', 3, 'a=b', 'en']);
  const changed = jsonOf(
    await users('set-fields', 'ada@shop.example', 'rating:=4', 'phone:=null', 'role=lead', '--json'),
  );
  assert.deepEqual([changed.role, changed.rating, changed.phone], ['lead', 4, undefined]);
  const { stdout } = await users('show', 'ada@shop.example');
  assert.match(stdout, /^role {6}lead\nlocale {4}en\nrating {4}4$/m);
});

test('tells what is wrong with a field, and changes nothing', async () => {
  for (const [args, code, message] of [
    [['role'], 2, 'a field must be name=value, or name:=JSON such as level:=3, not "role"'],
    [['rating:=three'], 2, 'a field must be name=value, or name:=JSON such as level:=3, not "rating:=three"'],
    [['roles:=["administrator"]'], 2, 'roles is not a field of the application; see comity users --help'],
    [['rating=many'], 1, /: rating must be/],
    [['colour=red'], 1, /colour/],
    [['organisationId=nowhere'], 1, /organisationId/],
  ] as const) {
    const outcome = await users('set-fields', 'ada@shop.example', ...args);
    assert.equal(outcome.code, code, outcome.stderr);
    if (typeof message === 'string') assert.equal(outcome.stderr, `comity: ${message}\n`);
    else assert.match(outcome.stderr, message);
  }
  const shown = jsonOf(await users('show', 'ada@shop.example', '--json'));
  assert.deepEqual([shown.rating, shown.roles], [4, []]);
});
