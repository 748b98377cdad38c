/**
 * Mistakes that people make in a configuration, one at a time in one that is sound: each is found before the start, by the compiler, by
 * `comity check`, or by both.
 */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { before, describe, test } from 'node:test';
import { findTypeProblems } from '../../../scripts/checks/compile.ts';
import { runCommand } from '../../harness/command-line.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const sound = `
import { action, collection, computed, defineConfig, type Static, Type } from '${resolve('src/index.ts')}';

const Ticket = Type.Object({
  title: Type.String({ minLength: 1 }),
  status: Type.Enum(['open', 'solved'], { default: 'open' }),
  contact: Type.String({ format: 'email' }),
  customerId: Type.String(),
  number: Type.Optional(Type.Integer()),
  changedBy: Type.Optional(Type.String()),
});
const customers = collection({ schema: Type.Object({ name: Type.String() }) });

const tickets = collection({
  schema: Ticket,
  access: { read: { anyOf: ['owner', { role: 'agent' }, { where: { status: 'solved' } }] }, delete: 'administrator' },
  references: { customerId: { collection: 'customers' } },
  indexes: ['status', 'number'],
  unpatchable: ['number'],
  stamp: { changedBy: { value: 'principal', on: 'update' } },
  computed: { slug: computed(Type.String(), ({ title }: Static<typeof Ticket>) => title.toLowerCase()) },
  examples: [{ title: 'The door', contact: 'ada@desk.example', customerId: 'c1' }],
  hooks: {
    beforeWrite({ after, before, refuse }) {
      if (before?.status === 'solved') refuse({ code: 'closed', status: 409 });
      after.title = after.title.trim();
    },
  },
  actions: {
    close: action({
      on: 'member',
      method: 'POST',
      path: '/close/{how}',
      input: Type.Object({ note: Type.String() }),
      codes: ['closed_already'],
      handler({ input, captures, refuse }) {
        if (captures.how === 'never') refuse({ code: 'closed_already', message: input.note });
      },
    }),
  },
});

export default defineConfig({
  collections: { tickets, customers },
  eventTypes: { 'ticket.escalated': { schema: Type.Object({ ticketId: Type.String() }) } },
  mail: { templates: './mails' },
  settings: { drainMs: 5000 },
  subscribers: {
    welcome: {
      events: ['tickets.created'],
      async handler({ event, mail, emit, resources }) {
        const { contact, title, id } = event.data.object;
        await mail.send({ to: contact, template: 'welcome', values: { title } });
        await mail.send({ to: contact, subject: 'Hello', text: 'Hello.' });
        await emit('ticket.escalated', { ticketId: id });
        await resources.tickets.create({ title, contact, customerId: 'c1' });
        await resources.tickets.update(id, { status: 'solved' });
      },
    },
    escalated: { events: ['ticket.escalated'], handler: () => undefined },
  },
  jobs: {
    nightly: {
      cron: '0 3 * * *',
      async run({ resources }) {
        await resources.tickets.list({ filter: { status: 'open' }, sort: ['-createdAt'] });
      },
    },
  },
  senders: { billing: { preset: 'standard', handler: () => undefined } },
});
`;

type Mistake = {
  readonly what: string;
  readonly from: string;
  readonly to: string;
  readonly compiler: boolean;
  /** Undefined: it does not find it. */
  readonly check?: RegExp;
};

const mistakes: readonly Mistake[] = [
  {
    what: 'a mail template that does not exist',
    from: "template: 'welcome'",
    to: "template: 'wellcome'",
    compiler: false,
    check: /\d+: mail\.send: no mail template is named "wellcome"; did you mean welcome\?/,
  },
  {
    what: 'a constant that names no mail template',
    from: "template: 'welcome'",
    to: 'template: title === "" ? "welcome" : "bye"',
    compiler: false,
    check: /no mail template is named "bye"/,
  },
  {
    what: 'an event with a misspelt change',
    from: "events: ['tickets.created']",
    to: "events: ['tickets.creatd']",
    compiler: true,
    check: /subscriber welcome: events: no collection emits "tickets\.creatd".*did you mean tickets\.created/,
  },
  {
    what: 'an event that no collection emits',
    from: "events: ['ticket.escalated']",
    to: "events: ['tickets.closed']",
    compiler: true,
    check: /no collection emits "tickets\.closed"/,
  },
  {
    what: 'a pattern that nothing matches',
    from: "events: ['ticket.escalated']",
    to: "events: ['ticket.closed.*']",
    compiler: true,
    check: /no collection emits "ticket\.closed\.\*"/,
  },
  {
    what: 'an emitted event that is not declared',
    from: "emit('ticket.escalated'",
    to: "emit('ticket.escaleted'",
    compiler: false,
    check: /\d+: emit: eventTypes does not declare "ticket\.escaleted"; did you mean ticket\.escalated/,
  },
  {
    what: 'a misspelt member of a collection',
    from: 'unpatchable:',
    to: 'unpachable:',
    compiler: true,
    check: /unpachable/,
  },
  {
    what: 'an index of no field',
    from: "indexes: ['status'",
    to: "indexes: ['statsu'",
    compiler: true,
    check: /"statsu"/,
  },
  {
    what: 'a reference to no collection',
    from: "customerId: { collection: 'customers' }",
    to: "customerId: { collection: 'customer' }",
    compiler: true,
    check: /customer/,
  },
  {
    what: 'a rule that does not exist',
    from: "delete: 'administrator'",
    to: "delete: 'administrators'",
    compiler: true,
    check: /access\.delete must be/,
  },
  {
    what: 'a condition of no such value',
    from: "where: { status: 'solved' }",
    to: "where: { status: 'closed' }",
    compiler: true,
  },
  {
    what: 'a stamp that does not exist',
    from: "value: 'principal'",
    to: "value: 'caller'",
    compiler: true,
    check: /stamp\.changedBy must be/,
  },
  {
    what: 'an example without a required member',
    from: "title: 'The door', contact",
    to: 'contact',
    compiler: true,
    check: /examples\[0\]/,
  },
  {
    what: 'an example of another type',
    from: "customerId: 'c1' }]",
    to: 'customerId: 7 }]',
    compiler: true,
    check: /examples\[0\]/,
  },
  { what: 'a hook that sets a misspelt field', from: 'after.title = ', to: 'after.titel = ', compiler: true },
  {
    what: 'a hook that compares with no such value',
    from: "before?.status === 'solved'",
    to: "before?.status === 'closed'",
    compiler: true,
  },
  { what: 'a refusal of no such status', from: 'status: 409', to: 'status: 419', compiler: true },
  {
    what: 'a code that the action does not list',
    from: "code: 'closed_already', message",
    to: "code: 'closed', message",
    compiler: true,
  },
  { what: 'a capture that the path has not', from: 'captures.how', to: 'captures.hwo', compiler: true },
  {
    what: 'a member that the input has not',
    from: 'message: input.note',
    to: 'message: input.notes',
    compiler: true,
  },
  {
    what: 'an action of no such method',
    from: "method: 'POST'",
    to: "method: 'SEND'",
    compiler: true,
    check: /method/,
  },
  {
    what: 'a computed field of a misspelt one',
    from: '({ title }: Static',
    to: '({ titel: title }: Static',
    compiler: true,
  },
  {
    what: 'a new document without a required member',
    from: 'create({ title, contact,',
    to: 'create({ title,',
    compiler: true,
  },
  {
    what: 'a patch of what is fixed at creation',
    from: "{ status: 'solved' });",
    to: '{ number: 7 });',
    compiler: true,
  },
  {
    what: 'a patch that removes a required member',
    from: "{ status: 'solved' });",
    to: '{ title: null });',
    compiler: true,
  },
  {
    what: 'a call on no collection',
    from: 'resources.tickets.list',
    to: 'resources.tikets.list',
    compiler: true,
  },
  {
    what: 'a filter by no field',
    from: "filter: { status: 'open' }",
    to: "filter: { state: 'open' }",
    compiler: true,
  },
  { what: 'an order by no field', from: "'-createdAt'", to: "'-created'", compiler: true },
  { what: 'a mail without a subject', from: "subject: 'Hello', text", to: 'text', compiler: true },
  {
    what: 'a time that never comes',
    from: "'0 3 * * *'",
    to: "'0 3 31 2 *'",
    compiler: false,
    check: /never comes/,
  },
  {
    what: 'a preset that does not exist',
    from: "preset: 'standard'",
    to: "preset: 'standart'",
    compiler: true,
    check: /did you mean standard/,
  },
  {
    what: 'a setting that does not exist',
    from: 'drainMs: 5000',
    to: 'drainMS: 5000',
    compiler: true,
    check: /drainMS/,
  },
  {
    what: 'a setting out of its bounds',
    from: 'drainMs: 5000',
    to: 'drainMs: -1',
    compiler: false,
    check: /drainMs|COMITY_DRAIN_MS/,
  },
  {
    what: 'a folder of templates that does not exist',
    from: "'./mails'",
    to: "'./mail'",
    compiler: false,
    check: /mail\.templates/,
  },
];

describe('planted mistakes', () => {
  const folder = temporaryFolder();
  const fileOf = (index: number): string => `mistake-${index}.config.ts`;
  const faulty = new Set<string>();

  before(async () => {
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    mkdirSync(join(folder, 'mails'));
    writeFileSync(join(folder, 'mails/welcome.txt'), 'Subject: Welcome\n\n{{title}}\n');
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'sound.config.ts'), sound);
    mistakes.forEach(({ what, from, to }, index) => {
      assert.equal(sound.split(from).length, 2, `${what}: ${from} stands once`);
      writeFileSync(join(folder, fileOf(index)), sound.replace(from, to));
    });
    const compilerOptions = { rewriteRelativeImportExtensions: false, noUnusedLocals: false };
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: resolve('tsconfig.json'), include: ['*.config.ts'], compilerOptions }),
    );
    for (const { file } of await findTypeProblems(folder)) faulty.add(file);
  });

  test('the configuration without one is sound', async () => {
    assert.equal(faulty.has('sound.config.ts'), false);
    const { code, stderr, stdout } = await runCommand(['check', '--config', join(folder, 'sound.config.ts')]);
    assert.equal(code, 0, stderr + stdout);
  });

  mistakes.forEach(({ what, compiler, check }, index) => {
    const finders = [...(compiler ? ['the compiler'] : []), ...(check === undefined ? [] : ['comity check'])];
    test(`${finders.join(' and ')}: ${what}`, async () => {
      assert.notEqual(finders.length, 0);
      assert.equal(faulty.has(fileOf(index)), compiler, 'found by the compiler');
      const { code, stderr } = await runCommand(['check', '--config', join(folder, fileOf(index))]);
      assert.equal(code, check === undefined ? 0 : 2, stderr);
      if (check !== undefined) assert.match(stderr, check);
    });
  });
});
