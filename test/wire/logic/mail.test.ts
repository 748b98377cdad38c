/** Mail of functions over the wire, on both stores, with a real mail server: kept with the unit, sent once, retried, resent. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../harness/command-line.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { type Answer, adminKey } from '../../harness/exchange.ts';
import type { Ending } from '../../harness/listening.ts';
import { fieldOf, type MailServer, startMailServer, textOf } from '../../harness/mail-server.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';
import { bankMessage, bankSecret, sendToBank } from '../received/messages.ts';

const config = fileURLToPath(new URL('./fixtures/mail.config.ts', import.meta.url));
const hello = { subject: 'Hello', text: 'Hello there.' };

/** Refuses recipients by the beginning of their address; `busy` only the first time. */
function startPickyServer(context: Ending): Promise<MailServer> {
  const seen = new Set<string>();
  return startMailServer(context, {
    onRcptTo({ address }, _session, done) {
      const isFirst = !seen.has(address);
      seen.add(address);
      if (address.startsWith('gone'))
        done(Object.assign(new Error('5.1.1 no such mailbox'), { responseCode: 550 }));
      else if (address.startsWith('busy') && isFirst)
        done(Object.assign(new Error('4.2.1 try again'), { responseCode: 451 }));
      else if (address.startsWith('never'))
        done(Object.assign(new Error('4.2.2 mailbox full'), { responseCode: 452 }));
      else done();
    },
  });
}

for (const engine of engineNames) {
  describe(`mail of functions on ${engine}`, () => {
    let server: RunningServer;
    let mails: MailServer;
    const endings: (() => unknown)[] = [];

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      mails = await startPickyServer({ after: (end) => void endings.push(end) });
      server = await startServer({
        config,
        env: {
          COMITY_SMTP_URL: mails.url,
          COMITY_MAIL_FROM: 'Desk <desk@desk.example>',
          COMITY_MAIL_ATTEMPTS_MAX: '2',
          COMITY_MAIL_RECIPIENTS_MAX: '3',
          COMITY_MAIL_BYTES_MAX: '2000',
          BANK_WEBHOOK_SECRET: bankSecret,
          ...(database === undefined ? {} : { COMITY_DATABASE_URL: database.url }),
        },
      });
      if (database !== undefined) endings.push(() => database.dispose());
    });

    after(async () => {
      await server.stop();
      for (const end of endings) await end();
    });

    const write = (mail: unknown, text = 'a note'): Promise<Answer> =>
      server.send('POST', '/api/v1/notes', { json: { text, mail: JSON.stringify(mail) } });
    type Shown = Readonly<Record<string, unknown>> & { readonly id: string; readonly attempts: number };
    const listed = async (query = ''): Promise<readonly Shown[]> =>
      (await server.send('GET', `/api/v1/mails?sort=-id&${query}`)).json().items as readonly Shown[];
    const settled = (to: string, status: string): Promise<Shown> =>
      eventually(
        async () => (await listed(`status=${status}`)).find((mail) => (mail.to as string[]).includes(to)),
        `a mail to ${to} that is ${status}`,
      );

    test('is sent after the commit, and its state is shown', async () => {
      const made = await write({
        ...hello,
        to: ['Ada@desk.example', 'bob@desk.example'],
        html: '<p>Hello <b>there</b>.</p>',
        replyTo: 'help@desk.example',
        headers: { 'X-Ticket': 'T-1' },
      });
      assert.equal(made.status, 201, made.body);
      const { raw, from, to } = await mails.next('ada@desk.example');
      assert.equal(from, 'desk@desk.example');
      assert.deepEqual(to, ['ada@desk.example', 'bob@desk.example']);
      assert.equal(fieldOf(raw, 'Subject'), 'Hello');
      assert.equal(fieldOf(raw, 'Reply-To'), 'help@desk.example');
      assert.equal(fieldOf(raw, 'X-Ticket'), 'T-1');
      assert.match(fieldOf(raw, 'Content-Type') ?? '', /^multipart\/alternative/);
      assert.match(raw, /<p>Hello <b>there<\/b>\.<\/p>/);
      const mail = await settled('ada@desk.example', 'sent');
      assert.equal(fieldOf(raw, 'Message-ID'), `<${mail.id}@desk.example>`);
      assert.match(String(mail.sentAt), /^\d{4}-/);
      const { id, createdAt, updatedAt, sentAt, ...rest } = mail;
      assert.deepEqual(rest, {
        to: ['ada@desk.example', 'bob@desk.example'],
        ...{ cc: [], bcc: [] },
        ...{ subject: 'Hello', template: null, status: 'sent', attempts: 1, scheduledAttempts: 1 },
        ...{ accepted: ['ada@desk.example', 'bob@desk.example'], refused: [], dueAt: null, lastError: null },
      });
      assert.equal((await server.send('GET', `/api/v1/mails/${id}`)).json().id, id);
      const again = await server.send('POST', `/api/v1/mails/${id}/resend`);
      assert.deepEqual([again.status, again.json().code], [409, 'content_unavailable']);
    });

    test('goes to people by their names, and to others as copies, of which blind ones are hidden', async () => {
      const made = await write({
        ...hello,
        to: [{ name: 'Ädå "L", <x@y.example>', address: 'named@desk.example' }],
        cc: 'copy@desk.example',
        bcc: 'blind@desk.example',
        replyTo: { name: 'Help', address: 'help@desk.example' },
      });
      assert.equal(made.status, 201, made.body);
      const { raw, to } = await mails.next('named@desk.example');
      assert.deepEqual(to, ['named@desk.example', 'copy@desk.example', 'blind@desk.example']);
      const [encoded = ''] = (fieldOf(raw, 'To') ?? '').split(' <named@desk.example>');
      assert.match(encoded, /^=\?UTF-8\?/);
      assert.equal(fieldOf(raw, 'Cc'), 'copy@desk.example');
      assert.equal(fieldOf(raw, 'Reply-To'), 'Help <help@desk.example>');
      assert.doesNotMatch(raw, /blind@|^bcc:/im);
      const mail = await settled('named@desk.example', 'sent');
      assert.deepEqual([mail.cc, mail.bcc], [['copy@desk.example'], ['blind@desk.example']]);
      assert.deepEqual(mail.accepted, to);
      await write({ ...hello, to: 'twice@desk.example', cc: ['Twice@desk.example'] });
      assert.deepEqual((await mails.next('twice@desk.example')).to, ['twice@desk.example']);
    });

    test('carries files, from hooks and from threads', async () => {
      const octets = Buffer.from(Array.from({ length: 300 }, (_, at) => at % 256));
      const files = [
        { name: 'größe.bin', type: 'application/x-own', base64: octets.toString('base64') },
        { name: 'note.txt', content: 'Grüße' },
      ];
      const made = await write({ ...hello, to: 'files@desk.example', files });
      assert.equal(made.status, 201, made.body);
      const answer = await sendToBank(server, bankMessage({ ...hello, to: 'filed@desk.example', files }));
      assert.equal(answer.status, 204, answer.body);
      for (const address of ['files@desk.example', 'filed@desk.example']) {
        const { raw } = await mails.next(address);
        assert.match(fieldOf(raw, 'Content-Type') ?? '', /^multipart\/mixed/);
        assert.ok(raw.replace(/\r?\n/g, '').includes(octets.toString('base64')));
        assert.match(raw, /Content-Type: application\/x-own/);
        assert.match(raw, /filename\*0?\*?=utf-8''gr%C3%B6%C3%9Fe\.bin/i);
        assert.match(raw, /Content-Type: text\/plain; (?:name=|charset=utf-8)(?:.|\s)*filename=note\.txt/);
      }
    });

    test('is sent by templates, with values in their place and escaped in HTML', async () => {
      const values = { name: 'Ada & <Bob>', title: 'Printer 2', days: 3 };
      const made = await write({ to: 'tess@desk.example', template: 'ticket-solved', values });
      assert.equal(made.status, 201, made.body);
      const { raw } = await mails.next('tess@desk.example');
      assert.equal(fieldOf(raw, 'Subject'), 'Printer 2 is solved');
      assert.match(raw, /Hello Ada & <Bob>,/);
      assert.match(raw, /Hello Ada &#38; &#60;Bob&#62;,/);
      assert.match(raw, /It took 3 days\./);
      assert.equal((await settled('tess@desk.example', 'sent')).template, 'ticket-solved');
    });

    test('is replaced by a template of the project where an account causes it', async () => {
      const account = { email: 'new@desk.example', password: 'correct horse' };
      const made = await server.send('POST', '/api/v1/auth/register', { json: account });
      assert.equal(made.status, 201, made.body);
      const { raw } = await mails.next('new@desk.example');
      assert.equal(fieldOf(raw, 'Subject'), 'Welcome to Desk');
      assert.match(textOf(raw), /^Your code is [A-Za-z0-9_-]{43}, new@desk\.example\.\n$/);
      assert.equal((await settled('new@desk.example', 'sent')).template, 'verify-email');
    });

    test('is not there if its unit is refused', async () => {
      const count = (await listed()).length;
      assert.equal((await write({ ...hello, to: 'no@desk.example' }, 'refused')).status, 422);
      const several = [
        { ...hello, to: 'no@desk.example' },
        { ...hello, to: 'nobody' },
      ];
      assert.equal((await write(several)).status, 422);
      assert.equal((await listed()).length, count);
    });

    test('is tried again after a passing refusal, and for nobody twice', async () => {
      await write({ ...hello, to: ['fine@desk.example', 'busy@desk.example'] });
      const mail = await settled('busy@desk.example', 'sent');
      assert.equal(mail.attempts, 2);
      const to = mails.received.filter(({ raw }) => raw.includes(mail.id)).map((each) => each.to);
      assert.deepEqual(to, [['fine@desk.example'], ['busy@desk.example']]);
    });

    test('fails at once if a recipient is refused for good, with what the server said', async () => {
      await write({ ...hello, to: ['okay@desk.example', 'gone@desk.example'] });
      const mail = await settled('gone@desk.example', 'failed');
      assert.equal(mail.attempts, 1);
      assert.equal(mail.lastError, '550 5.1.1 no such mailbox');
      assert.deepEqual([mail.accepted, mail.refused], [['okay@desk.example'], ['gone@desk.example']]);
    });

    test('fails after the last attempt, and can be sent again', async () => {
      await write({ ...hello, to: 'never@desk.example' });
      const mail = await settled('never@desk.example', 'failed');
      assert.deepEqual([mail.attempts, mail.lastError], [2, '452 4.2.2 mailbox full']);
      const lines = server.stderr().split('\n');
      for (const kind of ['mail-delayed', 'mail-given-up']) {
        const named = lines.filter(
          (line) => line.includes(`"${kind}"`) && line.includes(`"mail":"${mail.id}"`),
        );
        assert.equal(named.length, 1, kind);
      }
      const again = await server.send('POST', `/api/v1/mails/${mail.id}/resend`);
      assert.equal(again.status, 202, again.body);
      assert.deepEqual([again.json().status, again.json().scheduledAttempts], ['pending', 0]);
      assert.equal(again.headers.location, `/api/v1/mails/${mail.id}`);
      const after = await eventually(async () => {
        const [shown] = await listed('status=failed&limit=1');
        return shown !== undefined && shown.attempts > mail.attempts ? shown : undefined;
      }, 'the mail to fail again');
      assert.equal(after.attempts, 4);
    });

    test('is for administrators, and nobody lists contents or writes', async () => {
      const anonymous = { headers: { Authorization: '' }, key: null };
      assert.equal((await server.send('GET', '/api/v1/mails', anonymous)).status, 401);
      const shown = await server.send('GET', '/api/v1/mails?limit=100');
      assert.ok(!shown.body.includes('Hello there.'));
      assert.equal((await server.send('POST', '/api/v1/mails', { json: {} })).status, 405);
      assert.equal((await server.send('POST', '/api/v1/mails/mail_none/resend')).status, 404);
    });

    test('is sent once for a message whose handler failed after sending it', async () => {
      const answer = await sendToBank(server, bankMessage({ ...hello, to: 'handled@desk.example' }));
      assert.equal(answer.status, 204, answer.body);
      await settled('handled@desk.example', 'sent');
      const [message] = (await server.send('GET', '/api/v1/received')).json().items as { attempts: number }[];
      assert.equal(message?.attempts, 2);
      const copies = mails.received.filter(({ to }) => to.includes('handled@desk.example'));
      assert.equal(copies.length, 1);
    });

    test('fails the attempt of a handler if it is malformed', async () => {
      const answer = await sendToBank(server, bankMessage({ ...hello, to: 'handled' }));
      assert.equal(answer.status, 204, answer.body);
      const failed = await eventually(async () => {
        const list = await server.send('GET', '/api/v1/received?status=failed');
        return (list.json().items as { id: string }[])[0];
      }, 'the message to fail');
      const attempts = await server.send('GET', `/api/v1/received/${failed.id}/attempts`);
      assert.match(attempts.body, /the mail is malformed: \/to must be an e-mail address/);
    });

    test('is listed and sent again by commands', async () => {
      await write({ ...hello, to: 'gone-again@desk.example' });
      const { id } = await settled('gone-again@desk.example', 'failed');
      const comity = (...args: readonly string[]) =>
        runCommand(args, { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey });
      const list = await comity('mails', 'list', '--status', 'failed', '--limit', '1');
      assert.equal(list.code, 0, list.stderr);
      assert.match(list.stdout, new RegExp(`^${id} +gone-again@desk\\.example +Hello +failed +1 `, 'm'));
      const shown = await comity('mails', 'show', id);
      assert.match(shown.stdout, /^refused +gone-again@desk\.example\n/m);
      assert.match(shown.stdout, /^status +failed \(550 5\.1\.1 no such mailbox\)$/m);
      assert.equal((await comity('mails', 'resend', id)).stdout, `${id} is sent again.\n`);
      const refused = await comity('mails', 'resend', 'mail_none', '--json');
      assert.deepEqual([refused.code, refused.stdout], [1, '[]\n']);
      const none = await comity('mails', 'list', '--template', 'none');
      assert.equal(none.stdout, 'No mails.\n');
    });

    for (const [what, mail, told] of [
      ['no mail', 'x', /the mail is malformed: must be an object, not a string|is not JSON/],
      ['no recipient', hello, /\/to must name a recipient/],
      ['an empty list', { ...hello, to: [] }, /\/to must name a recipient/],
      ['no address', { ...hello, to: 'ada' }, /\/to must be an e-mail address.*, not "ada"/],
      [
        'a name in the text',
        { ...hello, to: 'Ada <ada@desk.example>' },
        /\/to must be an e-mail address such as ada@example\.com, or \{ name, address \}, not "Ada </,
      ],
      [
        'a name of two lines',
        { ...hello, to: { name: 'Ada\r\nBcc: c@d.example', address: 'ada@desk.example' } },
        /\/to\/name must be one line of at most 200 characters/,
      ],
      [
        'too many in all',
        { ...hello, to: 'a@b.example', cc: 'b@b.example', bcc: ['c@b.example', 'd@b.example'] },
        /\/to, \/cc and \/bcc have 4 recipients; the limit is 3/,
      ],
      ['a copy alone', { ...hello, cc: 'c@b.example' }, /\/to must name a recipient/],
      [
        'files that are no list',
        { ...hello, to: 'a@b.example', attachments: {} },
        /\/attachments must be a list/,
      ],
      [
        'a file without a name',
        { ...hello, to: 'a@b.example', attachments: [{ content: 'x' }] },
        /\/attachments\/0\/name must be one line of 1 to 200 characters/,
      ],
      [
        'a file without content',
        { ...hello, to: 'a@b.example', attachments: [{ name: 'x', content: { 0: 1 } }] },
        /\/attachments\/0\/content must be a text or a Uint8Array/,
      ],
      [
        'a media type of two lines',
        { ...hello, to: 'a@b.example', attachments: [{ name: 'x', content: 'x', type: 'a/b\r\nX: y' }] },
        /\/attachments\/0\/type must be a media type such as application\/pdf/,
      ],
      [
        'files that are too large',
        { ...hello, to: 'a@b.example', attachments: [{ name: 'x', content: 'x'.repeat(2001) }] },
        /20\d\d octets; the limit is 2000 \(COMITY_MAIL_BYTES_MAX\)/,
      ],
      ['a second line', { ...hello, to: ['a@b.example\r\nBcc: c@d.example'] }, /\/to\/0 must be/],
      [
        'too many',
        { ...hello, to: ['a@b.example', 'b@b.example', 'c@b.example', 'd@b.example'] },
        /4 recipients; the limit is 3/,
      ],
      [
        'a subject of two lines',
        { ...hello, to: 'a@b.example', subject: 'a\nBcc: x' },
        /\/subject must be one line/,
      ],
      ['no subject', { to: 'a@b.example', text: 'x' }, /\/subject must be one line/],
      ['no text', { to: 'a@b.example', subject: 'x' }, /\/text or \/html is required/],
      [
        'too much',
        { ...hello, to: 'a@b.example', text: 'ü'.repeat(1000) },
        /2\d+ octets; the limit is 2000 \(COMITY_MAIL_BYTES_MAX\)/,
      ],
      [
        'a header of ours',
        { ...hello, to: 'a@b.example', headers: { bcc: 'x@y.example' } },
        /\/headers\/bcc is set by Comity/,
      ],
      [
        'content type',
        { ...hello, to: 'a@b.example', headers: { 'Content-Type': 'x' } },
        /Content-Type is set by Comity/,
      ],
      [
        'a header of two lines',
        { ...hello, to: 'a@b.example', headers: { 'X-A': 'a\r\nBcc: b' } },
        /\/headers\/X-A must be one line/,
      ],
      [
        'no header name',
        { ...hello, to: 'a@b.example', headers: { 'X A:': 'a' } },
        /is not the name of a header field/,
      ],
      [
        'an unknown member',
        { ...hello, to: 'a@b.example', cci: 'c@b.example' },
        /\/cci is not a member of a mail; did you mean cc/,
      ],
      [
        'a value that is an object',
        { to: 'a@b.example', template: 'ticket-solved', values: { name: {}, title: 'y', days: 1 } },
        /\/values\/name must be a text or a number/,
      ],
      [
        'a value that breaks the subject',
        { to: 'a@b.example', template: 'ticket-solved', values: { name: 'x', title: 'y\nBcc: z', days: 1 } },
        /makes the subject of ticket-solved/,
      ],
      [
        'text beside a template',
        {
          to: 'a@b.example',
          template: 'ticket-solved',
          text: 'x',
          values: { name: 'x', title: 'y', days: 1 },
        },
        /\/text must not stand beside a template/,
      ],
    ] as const) {
      test(`refuses ${what}`, async () => {
        const count = (await listed('limit=100')).length;
        const refused = await write(mail);
        assert.equal(refused.status, 422, refused.body);
        assert.equal(refused.json().code, 'validation_failed');
        assert.match(String(refused.json().error), told);
        assert.equal((await listed('limit=100')).length, count);
      });
    }

    for (const [what, mail, told] of [
      [
        'an unknown template',
        { to: 'a@b.example', template: 'ticket-solve' },
        /names no template: "ticket-solve"; did you mean ticket-solved/,
      ],
      [
        'a missing value',
        { to: 'a@b.example', template: 'ticket-solved', values: { name: 'x', title: 'y' } },
        /it lacks days, which the template ticket-solved needs/,
      ],
      [
        'a value too many',
        { to: 'a@b.example', template: 'ticket-solved', values: { name: 'x', title: 'y', days: 1, day: 2 } },
        /it has day, which the template ticket-solved does not use/,
      ],
    ] as const) {
      test(`fails for ${what}, which is the function's own fault: the reason is in the log alone`, async () => {
        const count = (await listed('limit=100')).length;
        const failed = await write(mail);
        assert.equal(failed.status, 500, failed.body);
        assert.deepEqual([failed.json().code, failed.json().error], ['internal', 'internal error']);
        await eventually(
          async () => told.test(server.logOf(failed).replaceAll('\\"', '"')),
          'the reason is in the log',
        );
        assert.equal((await listed('limit=100')).length, count);
      });
    }
  });
}

test('mail is refused without a server, and the log has the code that the client got', async (context) => {
  const server = await startServer({
    config,
    env: { COMITY_DEVELOPMENT: 'off', BANK_WEBHOOK_SECRET: bankSecret },
  });
  context.after(() => server.stop());
  const mail = JSON.stringify({ ...hello, to: 'ada@desk.example' });
  const refused = await server.send('POST', '/api/v1/notes', { json: { text: 'a note', mail } });
  assert.deepEqual([refused.status, refused.json().code], [503, 'unavailable']);
  const line = await eventually(
    async () =>
      server
        .stderr()
        .split('\n')
        .find((each) => each.includes('"answered"')),
    'the refusal is in the log',
  );
  assert.equal(JSON.parse(line).code, 'unavailable');
});
