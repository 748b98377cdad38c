/**
 * A help desk: customers of several organisations ask, agents answer. Its rules are hooks, its own requests are actions, what follows from
 * a change is a subscriber, what happens at night is a job, and mails come in as webhooks and go out with the transaction. README.md is a
 * tour of it.
 *
 * Start it with `COMITY_CONFIG=examples/help-desk/comity.config.ts npm start`, and open http://127.0.0.1:4000/api/v1/desk.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { action, allow, collection, defineConfig, output } from 'comity';
import { closeSolved, receiveMail, reopen, tellContact } from './follow-up.ts';
import { merge } from './merge.ts';
import { Account, Comment, type Desk, Organisation, Ticket } from './schemas.ts';

const page = readFileSync(new URL('./desk.html', import.meta.url), 'utf8');
/** The module of the client that the page imports, and what that loads later. */
const clientFile = /^[\w-]+\.js$/;

const hourMs = 3_600_000;
/** From the request to the time when an answer is due. */
const dueMs = { normal: 48 * hourMs, urgent: 4 * hourMs } as const;

const isAgent = { role: 'agent' } as const;
/** The fields of the caller's account. */
const fieldsOf = (principal: { readonly fields: object }): Partial<Account> => principal.fields;
const isLead = allow<typeof Ticket>((principal, ticket) => {
  const { role, organisationId } = fieldsOf(principal);
  return role === 'lead' && ticket.organisationId.is(organisationId);
});
const ofOwnOrganisation = allow<typeof Account>((principal, account) =>
  account.organisationId.is(fieldsOf(principal).organisationId),
);
const isOwnOrganisation = allow<typeof Organisation>((principal, organisation) =>
  organisation.id.is(principal.tenant),
);
/** A comment is for those whose organisation has its ticket, as the ticket is now. */
const onOwnTicket = allow<typeof Comment, { ticketId: typeof Ticket }>((principal, comment) =>
  comment.ticketId.organisationId.is(principal.tenant),
);

const organisations = collection({
  description: 'Customers. The tenant of an account is the id of its organisation.',
  schema: Organisation,
  putCreates: true,
  access: {
    ...{ create: isAgent, update: isAgent, delete: isAgent },
    read: { anyOf: [isAgent, isOwnOrganisation] },
  },
  examples: [{ name: 'Lighthouse Ltd' }],
});

const tickets = collection({
  description: 'Questions. A customer sees those of the own organisation, an agent all of them.',
  schema: Ticket,
  tenantField: 'organisationId',
  access: {
    read: { anyOf: ['tenant', 'owner', isAgent] },
    create: 'principal',
    update: { anyOf: ['owner', isAgent, isLead] },
    delete: isAgent,
  },
  references: {
    // An organisation with tickets, and an agent with tickets, cannot be deleted.
    organisationId: { collection: 'organisations' },
    assigneeId: { collection: 'users' },
    mergedInto: { collection: 'tickets', onDelete: 'setNull', countAs: 'mergedCount' },
  },
  stamp: { askedBy: 'principal', changedBy: { value: 'principal', on: 'update' } },
  // The desk alone sets these.
  readOnly: {
    ...{ dueAt: 'administrator', solvedAt: 'administrator', mergedInto: 'administrator' },
    assigneeId: isAgent,
  },
  indexes: [['status', 'solvedAt'], 'dueAt', 'assigneeId'],
  search: { fields: ['title', 'body'], language: 'english' },
  // How the dashboard shows tickets.
  labels: {
    ...{ one: 'Ticket', many: 'Tickets' },
    members: { title: 'Subject', contact: 'Asked by', dueAt: 'Answer due', assigneeId: 'Agent' },
  },
  groups: {
    Question: ['title', 'body', 'contact', 'organisationId'],
    Work: ['status', 'priority', 'assigneeId', 'dueAt'],
  },
  display: {
    status: { as: 'state', tones: { open: 'warn', closed: 'quiet', solved: 'good' } },
    priority: { as: 'state', tones: { urgent: 'bad', normal: 'quiet' } },
    body: { as: 'long', inLists: false },
  },
  help: { contact: 'The e-mail address that the answer goes to.' },
  examples: [
    {
      title: 'The door does not close',
      status: 'open',
      priority: 'urgent',
      contact: 'ada@lighthouse.example',
    },
  ],
  hooks: {
    async beforeWrite({ action, before, after, now, resources, refuse }) {
      if (action === 'delete') return;
      if (
        before?.status === 'closed' &&
        after.status === 'closed' &&
        before.mergedInto === after.mergedInto
      ) {
        const message = 'the ticket is closed; open it again to change it';
        return refuse({ status: 409, code: 'ticket_closed', message, pointer: '/status' });
      }
      if (before === undefined || before.priority !== after.priority)
        after.dueAt = new Date(now.getTime() + dueMs[after.priority]).toISOString();
      if (after.status === 'open') delete after.solvedAt;
      else after.solvedAt ??= now.toISOString();
      if (after.assigneeId === undefined || after.assigneeId === before?.assigneeId) return;
      const assignee = await (resources as Desk).users.get(after.assigneeId);
      if (assignee?.roles.includes('agent') !== true)
        refuse({ code: 'not_an_agent', message: 'agents alone answer tickets', pointer: '/assigneeId' });
    },
  },
  actions: { merge },
});

const comments = collection({
  description: 'What was said about a ticket. Those who see the ticket may comment on it.',
  schema: Comment,
  access: {
    read: { anyOf: [isAgent, 'owner', onOwnTicket] },
    create: 'principal',
    update: { anyOf: ['owner', isAgent] },
    delete: isAgent,
  },
  readOnly: { byAgent: 'administrator' },
  stamp: { authorId: 'principal' },
  // The ticket must exist and be visible to the author.
  references: { ticketId: { collection: 'tickets', onDelete: 'cascade' } },
  indexes: ['ticketId'],
  examples: [
    { ticketId: '01JD7Z3Q8V5T9XK2M4N6P8R0SA', text: 'It happens in the morning only.', byAgent: false },
  ],
  hooks: {
    beforeWrite({ before, after, principal }) {
      after.byAgent = before?.byAgent ?? principal.roles.has('agent');
    },
  },
});

export default defineConfig({
  title: 'Help desk',
  accounts: {
    fields: Account,
    references: { organisationId: { collection: 'organisations' } },
    indexes: ['organisationId'],
    // Agents see all accounts, others those of their organisation.
    access: { read: { anyOf: [isAgent, ofOwnOrganisation] } },
    readOnly: { phone: 'owner' },
    hidden: { phone: { anyOf: ['owner', isAgent] } },
    // A customer looks after the accounts of the own organisation.
    admin: { role: 'manager', where: ofOwnOrganisation },
  },
  collections: { organisations, tickets, comments },
  // The first desk had other priorities: `comity migrate` brings its tickets along.
  migrations: [
    {
      id: '1-high-is-urgent',
      collection: 'tickets',
      up: (ticket) => ({ ...ticket, priority: ticket.priority === 'high' ? 'urgent' : 'normal' }),
    },
  ],
  // An account that may do everything needs more than a password.
  settings: { secondFactor: 'administrators' },
  actions: {
    desk: action({
      method: 'GET',
      access: 'public',
      summary: 'The page of the desk',
      // The page calls the API with scripts of its own; without a policy it would be sandboxed.
      output: output.text('text/html; charset=utf-8', {
        securityPolicy: "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
      }),
      handler: () => page,
    }),
    client: action({
      method: 'GET',
      path: '/desk/{file}',
      access: 'public',
      summary: 'The client for the page',
      output: output.text('text/javascript; charset=utf-8'),
      codes: ['no_such_script'],
      handler: ({ captures: { file }, refuse }) =>
        clientFile.test(file)
          ? readFile(new URL(file, import.meta.resolve('comity/client')), 'utf8')
          : refuse({ status: 404, code: 'no_such_script', message: 'the client has no such file' }),
    }),
  },
  subscribers: { tellContact, reopen },
  jobs: { closeSolved },
  mail: { templates: './mails' },
  senders: {
    // The mail provider posts what arrives at support@.
    mailbox: { preset: 'standard', description: 'Mails to the desk.', handler: receiveMail },
  },
});
