/** Mail of functions while there is no mail server, while it is away, and over kills of the program. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type EngineName, engineNames } from '../../harness/engine-names.ts';
import { fieldOf, startMailServer } from '../../harness/mail-server.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { eventually } from '../../harness/until.ts';
import { freePort } from '../free-port.ts';

const config = fileURLToPath(new URL('./fixtures/mail.config.ts', import.meta.url));

/** In which the program is killed. */
const rounds = roundsOf(1, 2);

type Program = Pick<RunningServer, 'send'>;

function send(program: Program, to: string) {
  const mail = JSON.stringify({ to, subject: 'Hello', text: `the text for ${to}` });
  return program.send('POST', '/api/v1/notes', { json: { text: 'a note', mail } });
}

async function countOf(program: Program, status: string): Promise<number> {
  const answer = await program.send('GET', `/api/v1/mails?status=${status}&limit=100`);
  return (answer.json().items as unknown[]).length;
}

async function storeOf(context: TestContext, engine: EngineName) {
  if (engine === 'SQLite') return {};
  const database = await databaseOfProgram(config);
  context.after(() => database.dispose());
  return { COMITY_DATABASE_URL: database.url };
}

test('is refused without a mail server, and the start warns', async (context) => {
  const program = await startServer({ config, env: { COMITY_DEVELOPMENT: 'off' } });
  context.after(() => program.stop());
  assert.match(program.stderr(), /warning: mails of functions are refused.*set COMITY_SMTP_URL/);
  const refused = await send(program, 'ada@desk.example');
  assert.equal(refused.status, 503, refused.body);
  assert.equal(refused.json().code, 'unavailable');
  assert.match(String(refused.json().error), /no mail server: set COMITY_SMTP_URL/);
});

test('is shown in the log in development without a mail server', async (context) => {
  const program = await startServer({ config });
  context.after(() => program.stop());
  assert.equal((await send(program, 'ada@desk.example')).status, 201);
  await eventually(async () => ((await countOf(program, 'sent')) === 1 ? true : undefined), 'the mail');
  const line = program
    .stderr()
    .split('\n')
    .find((each) => each.includes('mail-shown'));
  const { to, subject, text } = JSON.parse(line ?? '{}');
  assert.deepEqual([to, subject, text], ['ada@desk.example', 'Hello', 'the text for ada@desk.example']);
});

test('is not begun with attempts that take longer than mails are kept', async () => {
  const env = { COMITY_MAIL_ATTEMPTS_MAX: '100', COMITY_MAIL_RETENTION_SECONDS: '86400' };
  await assert.rejects(
    startServer({ env }),
    /100 attempts to send a mail \(COMITY_MAIL_ATTEMPTS_MAX\) take up to \d+ seconds.*after 86400/,
  );
});

for (const engine of engineNames) {
  test(`waits while the mail server is away, and over a restart: ${engine}`, async (context) => {
    const port = await freePort();
    const folder = temporaryFolder();
    const env = {
      COMITY_SMTP_URL: `smtp://127.0.0.1:${port}`,
      ...(await storeOf(context, engine)),
    };
    const first = await startServer({ config, folder, env });
    const values = { name: 'Ada', title: 'Printer', days: 3 };
    const mail = JSON.stringify({ to: 'ada@desk.example', template: 'ticket-solved', values });
    const made = await first.send('POST', '/api/v1/notes', { json: { text: 'a note', mail } });
    assert.equal(made.status, 201, made.body);
    const delayed = await eventually(async () => {
      const [mail] = (await first.send('GET', '/api/v1/mails')).json().items as { lastError: unknown }[];
      return mail?.lastError === null ? undefined : mail;
    }, 'the first attempt');
    assert.match(String(delayed.lastError), /ECONNREFUSED/);
    await first.stop();
    if (engine === 'SQLite') {
      for (const name of readdirSync(folder).filter((each) => each.startsWith('comity.')))
        assert.ok(!readFileSync(join(folder, name)).includes('It took 3 days'), `${name} holds the text`);
    }
    const second = await startServer({ config, folder, env });
    context.after(() => second.stop());
    const mails = await startMailServer(context, { port });
    assert.match((await mails.next('ada@desk.example')).raw, /It took 3 days/);
    await eventually(async () => ((await countOf(second, 'sent')) === 1 ? true : undefined), 'the mark');
    assert.equal(mails.received.length, 1);
  });

  test(`loses no mail to kills, and marks a repeated one by its Message-ID: ${engine}`, async (context) => {
    const mails = await startMailServer(context, {
      onMailFrom: (_address, _session, done) => void setTimeout(done, 20),
    });
    const folder = temporaryFolder();
    const env = {
      COMITY_SMTP_URL: mails.url,
      ...(await storeOf(context, engine)),
    };
    const answered: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const program = await spawnServer({ config, folder, env });
      const before = answered.length;
      await Promise.all(
        Array.from({ length: 15 }, async (_, at) => {
          const to = `r${round}-${at}@desk.example`;
          const made = await send(program, to).catch(() => undefined);
          if (made?.status === 201) answered.push(to);
          // The first answers end the first program, later ones the others: so mails are still asked for, waiting or on their way.
          if (answered.length === before + 1 + 4 * round) void program.kill();
        }),
      );
      await program.kill();
    }
    const last = await spawnServer({ config, folder, env });
    context.after(() => last.stop());
    await eventually(async () => {
      const arrived = new Set(mails.received.flatMap(({ to }) => to));
      return answered.every((to) => arrived.has(to)) ? true : undefined;
    }, 'every mail whose unit was acknowledged');
    await eventually(async () => ((await countOf(last, 'pending')) === 0 ? true : undefined), 'the marks');
    assert.ok(answered.length > 0);
    const ids = new Map<string, Set<string>>();
    for (const { to, raw } of mails.received) {
      const known = ids.get(String(to)) ?? new Set();
      ids.set(String(to), known.add(String(fieldOf(raw, 'Message-ID'))));
    }
    for (const [to, known] of ids) assert.equal(known.size, 1, to);
  });
}
