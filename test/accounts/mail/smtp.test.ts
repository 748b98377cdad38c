import assert from 'node:assert/strict';
import net from 'node:net';
import test, { type TestContext } from 'node:test';
import { createSmtpMail, type SmtpMail, type SmtpMailOptions } from '../../../src/mail/smtp.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { listen } from '../../harness/listening.ts';
import { fieldOf, headerOf, startMailServer, textOf } from '../../harness/mail-server.ts';
import { freePort } from '../../wire/free-port.ts';
import { cert, key } from './certificate.ts';

const mail = { to: 'ada@shop.example', subject: 'Shop: hello', text: 'First line.\n\nSecond line.\n' };

type Opened = {
  readonly mail: SmtpMail;
  readonly observed: Observation[];
  /** Resolves when so many mails have ended, well or not. */
  until(count: number): Promise<void>;
};

function open(context: TestContext, given: Partial<SmtpMailOptions> & { readonly smtpUrl: string }): Opened {
  const observed: Observation[] = [];
  let listeners: (() => void)[] = [];
  const opened = createSmtpMail({
    mailFrom: 'Comity <no-reply@localhost>',
    mailTimeoutMs: 5000,
    mailAttemptsMax: 3,
    mailsWaitingMax: 10,
    firstPauseMs: 1,
    observe: (fact) => {
      observed.push(fact);
      for (const tell of listeners) tell();
      listeners = [];
    },
    ...given,
  });
  context.after(() => opened.close());
  return {
    mail: opened,
    observed,
    async until(count) {
      const ended = () => observed.filter(({ kind }) => kind !== 'mail-delayed').length;
      while (ended() < count) {
        await new Promise<void>((resolve) => {
          listeners.push(resolve);
        });
      }
    },
  };
}

const kinds = (observed: readonly Observation[]) => observed.map(({ kind }) => kind);

test('sends a mail with its sender, its reader, its subject and its text', async (context) => {
  const server = await startMailServer(context);
  const outbox = open(context, {
    smtpUrl: server.url,
    mailFrom: 'Shop <shop@shop.example>',
  });
  outbox.mail.send(mail);
  await outbox.until(1);
  assert.deepEqual(outbox.observed, [{ kind: 'mail-sent', attempts: 1 }]);
  const [received] = server.received;
  assert.ok(received);
  assert.equal(received.from, 'shop@shop.example');
  assert.deepEqual(received.to, ['ada@shop.example']);
  assert.equal(fieldOf(received.raw, 'From'), 'Shop <shop@shop.example>');
  assert.equal(fieldOf(received.raw, 'To'), 'ada@shop.example');
  assert.equal(fieldOf(received.raw, 'Subject'), mail.subject);
  assert.equal(fieldOf(received.raw, 'Auto-Submitted'), 'auto-generated');
  assert.match(fieldOf(received.raw, 'Content-Type') ?? '', /^text\/plain; charset=utf-8/);
  assert.equal(textOf(received.raw), mail.text);
});

test('carries letters of any script, and long lines, to the other side as they were', async (context) => {
  const server = await startMailServer(context);
  const outbox = open(context, { smtpUrl: server.url });
  const text = `Überprüfung ✓\n\nhttps://shop.example/verify?${'x'.repeat(200)}=1\n.\n`;
  outbox.mail.send({ ...mail, text });
  await outbox.until(1);
  assert.equal(textOf(server.received[0]?.raw ?? ''), text);
});

for (const [what, given] of [
  ['a subject', { subject: 'Shop\r\nBcc: eve@shop.example\r\nX-Evil: 1' }],
  ['an address', { to: 'ada@shop.example\r\nBcc: eve@shop.example' }],
  ['an address that is a list', { to: 'ada@shop.example, eve@shop.example' }],
  ['an address with a name', { to: 'ada@shop.example> SIZE=1\r\nRCPT TO:<eve@shop.example' }],
] as const) {
  test(`lets ${what} add no header field and no reader`, async (context) => {
    const server = await startMailServer(context);
    const outbox = open(context, { smtpUrl: server.url, mailAttemptsMax: 1 });
    outbox.mail.send({ ...mail, ...given });
    await outbox.until(1);
    for (const { raw, to } of server.received) {
      assert.ok(to.length === 1 && to[0] !== 'eve@shop.example', to.join());
      const names = headerOf(raw).map(([name]) => name.toLowerCase());
      assert.ok(!names.includes('bcc') && !names.includes('x-evil'), names.join());
    }
  });
}

test('lets the sender in the settings add no header field', async (context) => {
  const server = await startMailServer(context);
  const outbox = open(context, {
    smtpUrl: server.url,
    mailFrom: 'Shop\r\nBcc: eve@shop.example\r\n <shop@shop.example>',
    mailAttemptsMax: 1,
  });
  outbox.mail.send(mail);
  await outbox.until(1);
  assert.equal(server.received.length, 1);
  for (const { raw, to } of server.received) {
    assert.deepEqual(to, ['ada@shop.example']);
    assert.ok(!headerOf(raw).some(([name]) => name.toLowerCase() === 'bcc'));
  }
});

test('reads no file and fetches nothing, whatever the mail says', async (context) => {
  const server = await startMailServer(context);
  const outbox = open(context, { smtpUrl: server.url, mailAttemptsMax: 1 });
  const path = { path: '/etc/hostname' } as unknown as string;
  outbox.mail.send({ ...mail, text: path });
  await outbox.until(1);
  assert.deepEqual(kinds(outbox.observed), ['mail-given-up']);
  assert.equal(server.received.length, 0);
});

test('tries again after a passing refusal, and counts its attempts', async (context) => {
  let refusals = 2;
  const server = await startMailServer(context, {
    onRcptTo(_address, _session, done) {
      refusals -= 1;
      done(refusals >= 0 ? Object.assign(new Error('try later'), { responseCode: 451 }) : null);
    },
  });
  const outbox = open(context, { smtpUrl: server.url });
  outbox.mail.send(mail);
  await outbox.until(1);
  assert.deepEqual(kinds(outbox.observed), ['mail-delayed', 'mail-delayed', 'mail-sent']);
  assert.deepEqual(outbox.observed.at(-1), { kind: 'mail-sent', attempts: 3 });
  assert.equal(server.received.length, 1);
});

test('gives a mail up at once that the server refuses for good', async (context) => {
  const server = await startMailServer(context, {
    onRcptTo: (_address, _session, done) =>
      done(Object.assign(new Error('no such mailbox'), { responseCode: 550 })),
  });
  const outbox = open(context, { smtpUrl: server.url });
  outbox.mail.send(mail);
  await outbox.until(1);
  const [given] = outbox.observed;
  assert.ok(given?.kind === 'mail-given-up');
  assert.equal(given.reason, 'refused');
  assert.equal(given.attempts, 1);
});

test('gives a mail up after all attempts at a server that is away', async (context) => {
  const outbox = open(context, { smtpUrl: `smtp://127.0.0.1:${await freePort()}` });
  outbox.mail.send(mail);
  await outbox.until(1);
  assert.deepEqual(kinds(outbox.observed), ['mail-delayed', 'mail-delayed', 'mail-given-up']);
  const given = outbox.observed.at(-1);
  assert.ok(given?.kind === 'mail-given-up');
  assert.equal(given.reason, 'attempts');
  assert.equal(given.attempts, 3);
});

/** Accepts connections and says what it is told to, once. */
async function startSilent(context: TestContext, greeting: string): Promise<number> {
  const silent = net.createServer((socket) => void socket.write(greeting));
  return (await listen(silent, context)).port;
}

for (const [what, greeting] of [
  ['says nothing', ''],
  ['hangs after its greeting', '220 mail.example ESMTP\r\n'],
]) {
  test(`ends an attempt at a server that ${what} when its time is over`, async (context) => {
    const port = await startSilent(context, greeting ?? '');
    const outbox = open(context, {
      smtpUrl: `smtp://127.0.0.1:${port}`,
      mailTimeoutMs: 100,
      mailAttemptsMax: 2,
    });
    outbox.mail.send(mail);
    await outbox.until(1);
    assert.deepEqual(kinds(outbox.observed), ['mail-delayed', 'mail-given-up']);
  });
}

test('ends an attempt at a server that trickles, though it is never silent', async (context) => {
  const port = await startSilent(context, '220-');
  const drip = net.createServer((socket) => {
    const timer = setInterval(() => socket.write('220-still there\r\n'), 20);
    socket.on('close', () => clearInterval(timer));
  });
  const { port: dripPort } = await listen(drip, context);
  assert.notEqual(port, dripPort);
  const outbox = open(context, {
    smtpUrl: `smtp://127.0.0.1:${dripPort}`,
    mailTimeoutMs: 200,
    mailAttemptsMax: 1,
  });
  outbox.mail.send(mail);
  await outbox.until(1);
  assert.deepEqual(kinds(outbox.observed), ['mail-given-up']);
});

test('takes no more mails than may wait, and never throws', async (context) => {
  const port = await startSilent(context, '');
  const outbox = open(context, {
    smtpUrl: `smtp://127.0.0.1:${port}`,
    mailsWaitingMax: 3,
    mailTimeoutMs: 200,
  });
  for (let at = 0; at < 5; at += 1) outbox.mail.send(mail);
  assert.equal(outbox.mail.size, 3);
  assert.deepEqual(outbox.observed, [
    { kind: 'mail-given-up', reason: 'full', attempts: 0, error: undefined },
    { kind: 'mail-given-up', reason: 'full', attempts: 0, error: undefined },
  ]);
});

test('sends what waits before it is closed, tries nothing again and takes nothing more', async (context) => {
  const server = await startMailServer(context);
  const outbox = open(context, { smtpUrl: server.url });
  for (let at = 0; at < 10; at += 1) outbox.mail.send(mail);
  await outbox.mail.close();
  assert.equal(server.received.length, 10);
  outbox.mail.send(mail);
  assert.deepEqual(outbox.observed.at(-1), {
    kind: 'mail-given-up',
    reason: 'closed',
    attempts: 0,
    error: undefined,
  });
  assert.equal(outbox.mail.size, 0);
});

test('is closed in bounded time while the server hangs, and tells of every mail', async (context) => {
  const port = await startSilent(context, '');
  const outbox = open(context, { smtpUrl: `smtp://127.0.0.1:${port}`, mailTimeoutMs: 150 });
  for (let at = 0; at < 10; at += 1) outbox.mail.send(mail);
  await outbox.mail.close();
  assert.equal(outbox.mail.size, 0);
  assert.deepEqual(
    kinds(outbox.observed),
    Array.from({ length: 10 }, () => 'mail-given-up'),
  );
});

test('gives up at its close what waits for another attempt', async (context) => {
  const server = await startMailServer(context, {
    onRcptTo: (_address, _session, done) =>
      done(Object.assign(new Error('try later'), { responseCode: 451 })),
  });
  const observedDelay = Promise.withResolvers<void>();
  const observed: Observation[] = [];
  const outbox = createSmtpMail({
    smtpUrl: server.url,
    mailFrom: 'Comity <no-reply@localhost>',
    mailTimeoutMs: 5000,
    mailAttemptsMax: 3,
    mailsWaitingMax: 10,
    firstPauseMs: 3_600_000,
    observe: (fact) => {
      observed.push(fact);
      if (fact.kind === 'mail-delayed') observedDelay.resolve();
    },
  });
  outbox.send(mail);
  await observedDelay.promise;
  await outbox.close();
  assert.deepEqual(kinds(observed), ['mail-delayed', 'mail-given-up']);
  assert.equal(outbox.size, 0);
});

test('speaks TLS from the first octet with smtps, and logs in with the name and password of the URL', async (context) => {
  const server = await startMailServer(context, {
    cert,
    key,
    secure: true,
    authOptional: false,
    onAuth: ({ username, password }, _session, done) =>
      done(username === 'shop@mail' && password === 'p/w:1' ? null : new Error('no'), { user: username }),
  });
  const outbox = open(context, {
    smtpUrl: `smtps://shop%40mail:p%2Fw%3A1@localhost:${server.port}`,
    ca: cert,
  });
  outbox.mail.send(mail);
  await outbox.until(1);
  assert.deepEqual(kinds(outbox.observed), ['mail-sent']);
  assert.equal(server.received[0]?.secure, true);
  assert.equal(server.received[0]?.user, 'shop@mail');
});

test('sends nothing to a server whose certificate is not trusted', async (context) => {
  const server = await startMailServer(context, { cert, key, secure: true });
  const outbox = open(context, { smtpUrl: `smtps://localhost:${server.port}`, mailAttemptsMax: 1 });
  outbox.mail.send(mail);
  await outbox.until(1);
  assert.deepEqual(kinds(outbox.observed), ['mail-given-up']);
  assert.equal(server.received.length, 0);
});

test('upgrades by STARTTLS where the server can, and verifies that certificate too', async (context) => {
  const server = await startMailServer(context, { cert, key, hideSTARTTLS: false });
  const trusted = open(context, { smtpUrl: `smtp://localhost:${server.port}`, ca: cert });
  trusted.mail.send(mail);
  await trusted.until(1);
  assert.equal(server.received[0]?.secure, true);
  const doubting = open(context, { smtpUrl: `smtp://localhost:${server.port}`, mailAttemptsMax: 1 });
  doubting.mail.send(mail);
  await doubting.until(1);
  assert.deepEqual(kinds(doubting.observed), ['mail-given-up']);
  assert.equal(server.received.length, 1);
});

test('sends nothing in the clear to another machine, unless it was told to', async (context) => {
  const server = await startMailServer(context);
  // This machine under a name that the adapter does not take for it.
  const other = `0.0.0.0:${server.port}`;
  const careful = open(context, { smtpUrl: `smtp://${other}`, mailAttemptsMax: 1 });
  careful.mail.send(mail);
  await careful.until(1);
  assert.deepEqual(kinds(careful.observed), ['mail-given-up']);
  assert.equal(server.received.length, 0);
  const told = open(context, { smtpUrl: `smtp://${other}?tls=none` });
  told.mail.send(mail);
  await told.until(1);
  assert.deepEqual(kinds(told.observed), ['mail-sent']);
});

test('keeps the password of the mail server out of what it tells of a refused login', async (context) => {
  const server = await startMailServer(context, {
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: (_auth, _session, done) => done(new Error('no')),
  });
  const outbox = open(context, {
    smtpUrl: `smtp://shop:very-secret-word@127.0.0.1:${server.port}`,
    mailAttemptsMax: 2,
  });
  outbox.mail.send(mail);
  await outbox.until(1);
  // A refused login may be mended by the operator: it is tried again.
  assert.deepEqual(kinds(outbox.observed), ['mail-delayed', 'mail-given-up']);
  for (const fact of outbox.observed) {
    const { error } = fact as { readonly error: Error };
    const told = JSON.stringify([error, error.message, error.stack]);
    assert.ok(!told.includes('very-secret-word'));
    assert.ok(!told.includes(Buffer.from('very-secret-word').toString('base64')));
  }
});
