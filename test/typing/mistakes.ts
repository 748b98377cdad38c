/**
 * Mistakes in declarations and functions that the compiler must find. A directive without an error below it is an error itself, so the check
 * `compile` fails when one of them is no longer found. The statements are never run.
 */
import {
  action,
  collection,
  computed,
  createComity,
  type Document,
  defineConfig,
  type Handler,
  type Static,
  Type,
} from 'comity';

const Ticket = Type.Object({
  title: Type.String(),
  status: Type.Enum(['open', 'pending', 'solved']),
  priority: Type.Integer(),
  organisationId: Type.String(),
  address: Type.Optional(Type.Object({ city: Type.String() })),
});
type Ticket = Static<typeof Ticket>;
const Organisation = Type.Object({ name: Type.String() });
const slug = computed(Type.String(), ({ title }: Ticket) => title.toLowerCase());

// What fits is accepted: otherwise every line below could be an error for another reason.
export const tickets = collection({
  schema: Ticket,
  indexes: ['status', ['organisationId', 'createdAt'], 'address.city'],
  unique: ['title'],
  labels: { one: 'Ticket', members: { status: 'State' } },
  title: (ticket) => `${ticket.title} ${ticket.address.city}`,
  groups: { Work: ['status', 'priority'] },
  display: { priority: 'duration' },
  search: ['title'],
  references: { organisationId: { collection: 'organisations' } },
  tenantField: 'organisationId',
  access: { read: { where: { status: 'open' } } },
  examples: [{ title: 'It broke', status: 'open', priority: 1, organisationId: 'o' }],
  hooks: {
    beforeWrite({ after }) {
      after.status = 'pending';
    },
  },
});
const organisations = collection({ schema: Organisation });

export const mistaken = [
  // @ts-expect-error indexes: no such field
  collection({ schema: Ticket, indexes: ['stauts'] }),
  // @ts-expect-error indexes: no such field within an object
  collection({ schema: Ticket, indexes: [['status', 'address.town']] }),
  // @ts-expect-error unique: no such field
  collection({ schema: Ticket, unique: ['titel'] }),
  // @ts-expect-error search: no such field
  collection({ schema: Ticket, search: ['text'] }),
  // @ts-expect-error search: it is a number
  collection({ schema: Ticket, search: ['priority'] }),
  // @ts-expect-error textField: it is a number
  collection({ schema: Ticket, textField: 'priority' }),
  // @ts-expect-error where: within an object, a field has its type too
  collection({ schema: Ticket, access: { read: { where: { 'address.city': 1 } } } }),
  // @ts-expect-error indexes: no such computed field
  collection({ schema: Ticket, computed: { slug }, indexes: ['slgu'] }),
  // @ts-expect-error references: no such field
  collection({ schema: Ticket, references: { organisation: { collection: 'organisations' } } }),
  collection({
    schema: Ticket,
    references: {
      organisationId: { collection: 'organisations' },
      // @ts-expect-error references: no such field, beside one that there is
      organisation: { collection: 'organisations' },
      // @ts-expect-error references: it is a number
      priority: { collection: 'organisations' },
    },
  }),
  // @ts-expect-error references: a reference has no such member
  collection({ schema: Ticket, references: { organisationId: { collection: 'organisations', count: 'x' } } }),
  // @ts-expect-error tenantField: no such field
  collection({ schema: Ticket, tenantField: 'tenant' }),
  // @ts-expect-error readOnly: no such field
  collection({ schema: Ticket, readOnly: { state: 'admin' } }),
  // @ts-expect-error hidden: no such field
  collection({ schema: Ticket, hidden: { notes: 'admin' } }),
  // @ts-expect-error unpatchable: no such field
  collection({ schema: Ticket, unpatchable: ['owner'] }),
  // @ts-expect-error where: no such value
  collection({ schema: Ticket, access: { read: { where: { status: 'closed' } } } }),
  // @ts-expect-error where: no such field
  collection({ schema: Ticket, access: { read: { where: { state: 'open' } } } }),
  // @ts-expect-error examples: no such value
  collection({ schema: Ticket, examples: [{ title: 'x', status: 'new', priority: 1, organisationId: 'o' }] }),
  // @ts-expect-error examples: a required member is missing
  collection({ schema: Ticket, examples: [{ title: 'x', status: 'open', priority: 1 }] }),
  // @ts-expect-error title: no such field
  collection({ schema: Ticket, title: (ticket) => `${ticket.name}` }),
  // @ts-expect-error groups: no such field
  collection({ schema: Ticket, groups: { Work: ['state'] } }),
  // @ts-expect-error display: no such kind
  collection({ schema: Ticket, display: { priority: 'cash' } }),
  // @ts-expect-error no member of a collection has this name
  collection({ schema: Ticket, index: ['status'] }),
  collection({
    schema: Ticket,
    hooks: {
      beforeWrite({ before, after, action, refuse }) {
        // @ts-expect-error hooks: no such value
        after.status = 'closed';
        // @ts-expect-error hooks: of a new document there is no earlier state
        if (before.status === 'solved') return;
        // @ts-expect-error hooks: no such action
        if (action === 'remove') return;
        // @ts-expect-error hooks: a refusal needs a code
        refuse({ status: 409 });
        // @ts-expect-error hooks: a refusal has no such status
        refuse({ code: 'teapot', status: 418 });
      },
      // @ts-expect-error hooks: it must return the document
      afterRead({ document }) {
        document.title.trim();
      },
    },
  }),
];

// What fits is accepted.
export const actions = [
  action({ method: 'POST', access: 'agent', handler: () => undefined }),
  action({ method: 'POST', access: { anyOf: ['principal', { role: 'agent' }] }, handler: () => undefined }),
  action({ on: 'member', method: 'POST', access: 'owner', handler: ({ document }) => void document.title }),
  action({ on: 'member', method: 'POST', access: { where: { title: 'x' } }, handler: () => undefined }),
];

export const mistakenActions = [
  // @ts-expect-error access: there is no document with an owner
  action({ method: 'POST', access: 'owner', handler: () => undefined }),
  // @ts-expect-error access: there is no document with a tenant
  action({ on: 'collection', method: 'POST', access: 'tenant', handler: () => undefined }),
  // @ts-expect-error access: there is no document with members
  action({ method: 'POST', access: { where: { title: 'x' } }, handler: () => undefined }),
  // @ts-expect-error access: there is no rule of this name
  action({ method: 'POST', access: { rol: 'agent' }, handler: () => undefined }),
];

const sender = { preset: 'standard' } as const;

export const configuration = defineConfig({
  collections: { tickets, organisations },
  eventTypes: { 'tickets.merged': {} },
  subscribers: {
    // @ts-expect-error subscribers: no collection emits this type
    misspelt: { events: ['tickets.updatd'], handler: () => undefined },
    // @ts-expect-error subscribers: nothing emits a type below this
    nowhere: { events: ['tickts.*'], handler: () => undefined },
    moved: {
      events: ['tickets.updated', 'tickets.merged'],
      // @ts-expect-error subscribers: a ticket has no member of this name
      orderBy: ({ data, type }) => (type === 'tickets.updated' ? data.object.customer : null),
      handler({ event, before }) {
        // @ts-expect-error subscribers: no pattern is of this type
        if (event.type === 'tickets.updatd') return;
        if (event.type === 'tickets.merged') return;
        // @ts-expect-error subscribers: a ticket has no member of this name
        event.data.object.customer.trim();
        // @ts-expect-error subscribers: after the creation of a document there is nothing before
        before.title.trim();
      },
    },
  },
  senders: {
    own: {
      ...sender,
      async handler({ resources, message, emit, mail }) {
        const open: readonly Document<Ticket>[] = await resources.tickets.list({
          filter: { status: 'open', priority: { gte: 2 }, 'address.city': 'Bonn' },
          sort: ['-createdAt', 'title'],
        });
        const priority: number = open[0]?.priority ?? 0;
        await resources.organisations.create({ name: String(priority) });
        // @ts-expect-error handlers: no such collection
        await resources.ticket.list();
        // @ts-expect-error handlers: no such field
        await resources.tickets.list({ filter: { state: 'open' } });
        // @ts-expect-error handlers: no such value
        await resources.tickets.list({ filter: { status: 'closed' } });
        // @ts-expect-error handlers: no such field within an object
        await resources.tickets.list({ filter: { 'address.town': 'Bonn' } });
        // @ts-expect-error handlers: no such value within an object
        await resources.tickets.list({ filter: { 'address.city': 1 } });
        // @ts-expect-error handlers: a field within an object has a name with a dot
        await resources.tickets.list({ filter: { address: { city: 'Bonn' } } });
        // @ts-expect-error handlers: deletedAt is shown, and not found
        await resources.tickets.list({ filter: { deletedAt: '2026-11-22T10:00:00Z' } });
        // @ts-expect-error handlers: no such order
        await resources.tickets.list({ sort: ['-age'] });
        // @ts-expect-error handlers: no such order within an object
        await resources.tickets.list({ sort: ['address.town'] });
        // @ts-expect-error handlers: accounts are not deleted
        await resources.users.delete('usr_1');
        // @ts-expect-error handlers: all pages have no limit
        resources.tickets.all({ limit: 10 });
        // @ts-expect-error handlers: all documents are not an array
        resources.tickets.all().length.toFixed();
        // @ts-expect-error handlers: required members are missing
        await resources.tickets.create({ title: 'x' });
        // @ts-expect-error handlers: a patch has the types of the fields
        await resources.tickets.update('id', { priority: 'high' });
        // @ts-expect-error handlers: there may be no such document
        (await resources.tickets.get('id')).title.trim();
        // @ts-expect-error handlers: the name of a type comes first
        await emit({ type: 'ticket.escalated' });
        // @ts-expect-error handlers: a mail has a subject and a text, or a template
        await mail.send({ to: 'ada@example.com', subject: message.id });
      },
    },
  },
});

export const orders = defineConfig({
  collections: {
    orders: collection({
      schema: Type.Object({
        item: Type.String(),
        sku: Type.String(),
        state: Type.Enum(['new', 'paid'], { default: 'new' }),
        customerId: Type.String(),
        ship: Type.Object({ city: Type.String(), country: Type.String({ default: 'DE' }) }),
      }),
      computed: { slug: computed(Type.String(), ({ item }: { readonly item: string }) => item) },
      unpatchable: ['sku'],
      tenantField: 'customerId',
    }),
  },
  jobs: {
    order: {
      every: '1h',
      async run({ resources: { orders } }) {
        const fields = { item: 'x', sku: 'x', customerId: 'c', ship: { city: 'Bonn' } };
        // @ts-expect-error input: a computed member is in none
        await orders.create({ ...fields, slug: 'x' });
        // @ts-expect-error input: the id of a new document is an option
        await orders.create({ ...fields, id: 'x' });
        // @ts-expect-error input: null is no state
        await orders.create({ ...fields, state: null });
        // @ts-expect-error patch: fixed at creation
        await orders.update('id', { sku: 'y' });
        // @ts-expect-error patch: the tenant is fixed at creation
        await orders.update('id', { customerId: 'y' });
        // @ts-expect-error patch: a required member cannot be removed
        await orders.update('id', { item: null });
        // @ts-expect-error patch: a required member cannot be removed within an object either
        await orders.update('id', { ship: { city: null } });
        // @ts-expect-error patch: no such member within the object
        await orders.update('id', { ship: { town: 'x' } });
      },
    },
  },
});
type Named = keyof (typeof orders)['collections'];
// @ts-expect-error no collection has this name
export const misnamed: Named = 'ordres';
// @ts-expect-error stamp: no such field
collection({ schema: Ticket, stamp: { authorId: 'principal' } });

// @ts-expect-error references: no collection has this name
defineConfig({ collections: { tickets, organisation: organisations } });
// @ts-expect-error a configuration needs collections
defineConfig({ title: 'Empty' });
// @ts-expect-error no member of the configuration has this name
defineConfig({ collections: {}, prefix: '/api' });
// @ts-expect-error no setting has this name
defineConfig({ collections: {}, settings: { prot: 8080 } });

export const handler: Handler = async ({ message }) => {
  // @ts-expect-error the body of a message is not yet JSON
  message.body.id.trim();
};

// @ts-expect-error settings are texts, as in an environment
void createComity(defineConfig({ collections: {} }), { COMITY_PORT: 8080 });
