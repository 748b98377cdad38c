/** The log: what is written at which level, as one JSON object a line. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { createLog, type LogLevel, provokedLinesPerSecondMax } from '../../src/observe/log.ts';
import type { Observation } from '../../src/observe/observation.ts';

function lines(level: LogLevel, ...facts: readonly Observation[]): Record<string, unknown>[] {
  let written = '';
  const log = createLog({
    level,
    destination: {
      write: (line) => {
        written += line;
      },
    },
  });
  for (const fact of facts) log(fact);
  return written
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

function answered(status: number, code?: string): Observation {
  const common = {
    kind: 'answered',
    method: 'GET',
    route: '/api/v1/products/{id}',
  } as const;
  return { ...common, code, exchange: { id: 'a-1', peer: '127.0.0.1' }, status, durationMs: 1.5 };
}

test('logs an answer at info only when its status is 500 or more', () => {
  assert.deepEqual(lines('info', answered(200), answered(404), answered(499)), []);
  const [line] = lines('info', answered(503));
  assert.equal(line?.level, 'error');
  assert.equal(line?.status, 503);
  assert.equal(line?.route, '/api/v1/products/{id}');
});

for (const [status, code] of [
  [501, 'method_unknown'],
  [501, 'transfer_coding_unknown'],
  [501, 'protocol_unknown'],
  [505, 'version_unsupported'],
  [502, 'destination_failed'],
  [504, 'destination_timeout'],
  [500, 'forwarded'],
] as const) {
  test(`logs ${status} ${code}, which is no failure of the program, at debug alone`, () => {
    assert.deepEqual(lines('info', answered(status, code)), []);
    assert.equal(lines('debug', answered(status, code))[0]?.level, 'debug');
  });
}

test('logs no answer to a readiness probe as a failure while the program drains', () => {
  const unready = { ...answered(503, 'unavailable'), route: '/health/ready' } as Observation;
  const draining = { kind: 'draining', reason: 'SIGTERM', delayMs: 5000 } as const;
  const kinds = lines('info', unready, draining, unready, answered(503)).map(({ level, route }) => [
    level,
    route,
  ]);
  assert.deepEqual(kinds, [
    ['error', '/health/ready'],
    ['info', undefined],
    ['error', '/api/v1/products/{id}'],
  ]);
});

test('logs every answer at debug', () => {
  assert.deepEqual(
    lines('debug', answered(200), answered(500)).map((line) => line.level),
    ['debug', 'error'],
  );
});

test('logs the life of the program at info, with a time in ISO 8601 and without host name and process id', () => {
  const [line, ...more] = lines('info', { kind: 'listening', url: 'http://127.0.0.1:4000' });
  assert.deepEqual(more, []);
  const { time, ...rest } = line ?? {};
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(rest, {
    level: 'info',
    kind: 'listening',
    url: 'http://127.0.0.1:4000',
    msg: 'listening',
  });
});

test('logs an error with its name, message, stack and cause', () => {
  const error = new TypeError('outer', { cause: new Error('inner') });
  const [line] = lines('info', { kind: 'failed', id: 'a-2', error });
  const logged = line?.error as Record<string, unknown>;
  assert.equal(line?.id, 'a-2');
  assert.equal(logged.name, 'TypeError');
  assert.equal(logged.message, 'outer');
  assert.match(String(logged.stack), /log\.test\.ts/);
  assert.equal((logged.cause as Record<string, unknown>).message, 'inner');
});

test('ends the description of an error whose causes go round', () => {
  const error = new Error('round');
  error.cause = error;
  const [line] = lines('info', { kind: 'failed', id: 'a-3', error });
  assert.equal(line?.level, 'error');
});

test('logs what was thrown even when it is no error', () => {
  const [line] = lines('info', { kind: 'failed', id: 'a-4', error: 'just text' });
  assert.deepEqual(line?.error, { message: 'just text' });
});

test('writes nothing when silent', () => {
  assert.deepEqual(lines('silent', answered(500), { kind: 'failed', id: 'a', error: new Error('x') }), []);
});

test('writes to standard error, and has written when the process exits', () => {
  const source = `
    import { createLog } from ${JSON.stringify(import.meta.resolve('../../src/observe/log.ts'))};
    createLog({ level: 'info' })({ kind: 'draining', reason: 'test' });
    process.exit(0);`;
  const run = spawnSync(process.execPath, ['--input-type=module', '--eval', source], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  assert.equal(run.stdout, '');
  assert.equal(JSON.parse(run.stderr).reason, 'test');
});

test('warns of a process that was started with something else, and says how changes of others arrive', () => {
  const [differs, following] = lines(
    'info',
    { kind: 'processes-differ', what: 'other collections' },
    { kind: 'store-following', how: 'poll' },
  );
  assert.equal(differs?.level, 'warn');
  assert.equal(
    differs?.msg,
    'another process on the same store has other collections: start all with the same configuration',
  );
  assert.equal(following?.level, 'info');
  assert.equal(following?.how, 'poll');
});

test('logs what happens to accounts at the level that it deserves', () => {
  const facts: readonly Observation[] = [
    { kind: 'login-judged', outcome: 'failed' },
    { kind: 'mail-sent', mail: 'mail_1', attempts: 1 },
    { kind: 'signing-key-made', kid: 'k1', algorithm: 'EdDSA' },
    { kind: 'signing-key-retired', kid: 'k0' },
    { kind: 'session-reused', session: 'ses_1' },
    { kind: 'hashing-refused', waiting: 128 },
    { kind: 'mail-delayed', mail: 'mail_1', attempts: 1, error: new Error('x') },
    { kind: 'mail-given-up', mail: 'mail_1', reason: 'attempts', attempts: 1, error: undefined },
    { kind: 'issuer-failed', issuer: 'https://issuer.example', error: new Error('x') },
    { kind: 'provider-failed', provider: 'google', error: new Error('x') },
    { kind: 'audit-dropped', facts: 3 },
  ];
  const levels = lines('debug', ...facts).map(({ kind, level }) => [kind, level]);
  assert.deepEqual(levels, [
    ['login-judged', 'debug'],
    ['mail-sent', 'debug'],
    ['signing-key-made', 'info'],
    ['signing-key-retired', 'info'],
    ['session-reused', 'warn'],
    ['hashing-refused', 'warn'],
    ['mail-delayed', 'warn'],
    ['mail-given-up', 'error'],
    ['issuer-failed', 'error'],
    ['provider-failed', 'error'],
    ['audit-dropped', 'error'],
  ]);
});

test('logs of an error that another service had a hand in its name, code, a short message and its causes, no stack', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:465'), { code: 'ECONNREFUSED' });
  const error = new TypeError(`fetch failed ${'of this '.repeat(100)}`, { cause });
  const [line] = lines('info', { kind: 'issuer-failed', issuer: 'https://issuer.example', error });
  const logged = line?.error as { name: string; message: string; cause: unknown };
  assert.equal(line?.issuer, 'https://issuer.example');
  assert.deepEqual(Object.keys(logged), ['name', 'message', 'cause']);
  assert.equal(logged.name, 'TypeError');
  assert.ok(logged.message.startsWith('fetch failed of this'));
  assert.ok(logged.message.length <= 200);
  assert.deepEqual(logged.cause, {
    name: 'Error',
    code: 'ECONNREFUSED',
    message: 'connect ECONNREFUSED 127.0.0.1:465',
  });
});

test('writes ten lines a second of what clients can provoke, and says how many it left out', () => {
  let written = '';
  let nowMs = 5000;
  const write = (line: string): void => {
    written += line;
  };
  const destination = { write };
  const log = createLog({ level: 'info', destination, monotonic: () => nowMs });
  const refused = { kind: 'connection-refused', peer: '127.0.0.1' } as const;
  for (let count = 0; count < 25; count += 1) log(refused);
  nowMs = 6000;
  log(refused);
  const seen = written
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(seen.length, provokedLinesPerSecondMax + 1);
  assert.equal(seen.at(-1).omitted, 15);
});
