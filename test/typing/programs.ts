/** Declarations and functions that the compiler must accept, with the types that they must get. The statements are never run. */
import {
  collection,
  computed,
  defineConfig,
  type EventHandling,
  type Handler,
  type JobRun,
  type ResourcesOf,
  type Static,
  Type,
} from 'comity';

const Ticket = Type.Object({
  title: Type.String(),
  status: Type.Enum(['open', 'solved'], { default: 'open' }),
  labels: Type.Array(Type.String(), { default: [] }),
  address: Type.Optional(
    Type.Object({ city: Type.String(), country: Type.String({ default: 'DE' }), floor: Type.Integer() }),
  ),
});
type Ticket = Static<typeof Ticket>;
const Comment = Type.Object({ ticketId: Type.String(), text: Type.String(), likes: Type.Integer() });
type Comment = Static<typeof Comment>;

const computedFields = {
  slug: computed(Type.String(), ({ title }: Ticket) => title.toLowerCase()),
  words: computed(Type.Integer(), ({ title }: Ticket) => title.split(' ').length),
};

export const tickets = collection({
  schema: Ticket,
  softDelete: true,
  computed: computedFields,
  indexes: ['slug', 'address.city'],
  search: ['title', 'labels', 'slug'],
  // A complete body for a POST: members with defaults may be left out.
  examples: [{ title: 'It drips' }, { title: 'It drips', address: { city: 'Bonn', floor: 1 } }],
  hooks: {
    // Without the names of the other collections (`Schemas`), each is known to exist, with any fields.
    async beforeWrite({ before, after, id, resources }) {
      const { comments } = resources;
      if (comments === undefined) return;
      await comments.list({ filter: { ticketId: id } });
      await comments.list({ filter: { likes: 5, text: { like: 'x%' }, hidden: false, by: null } });
      await comments.list({
        filter: { or: [{ likes: { gt: 5 } }, { not: { ticketId: { in: ['a', 'b'] } } }] },
      });
      await comments.list({ sort: ['-createdAt', 'address.city'], limit: 3, q: 'x' });
      for await (const comment of comments.all({ filter: { ticketId: id } }))
        await comments.update(comment.id, { likes: 1, text: null });
      const words: number | undefined = before?.words;
      after.title = `${words} ${before?.slug}`;
    },
    afterRead({ document }) {
      const slug: string | undefined = document.slug;
      const deletedAt: string | undefined = document.deletedAt;
      return { ...document, slug, deletedAt };
    },
  },
});

const comments = collection({ schema: Comment, references: { ticketId: { collection: 'tickets' } } });

/** A function outside of the configuration names what it uses: schemas, or schemas with computed fields. */
type Desk = ResourcesOf<{
  tickets: { schema: typeof Ticket; computed: typeof computedFields; softDelete: true };
  comments: typeof Comment;
}>;

export const elsewhere = {
  events: ['comments.created'],
  async handler({ event, resources }: EventHandling<Comment, Desk>) {
    const ticket = await resources.tickets.get(event.data.object.ticketId);
    const slug: string | undefined = ticket?.slug;
    await resources.tickets.create({ title: String(slug) });
  },
};

export const configuration = defineConfig({
  collections: { tickets, comments },
  eventTypes: { 'invoices.paid': {}, 'tickets.merged': {}, 'day.closed.late': {} },
  subscribers: {
    elsewhere,
    first: {
      events: ['comments.created'],
      orderBy: (event) => event.data.object.ticketId.length,
      async handler({ event, before, after, resources }) {
        const likes: number = event.data.object.likes;
        const made: string = event.data.object.id + event.data.object.createdAt;
        const texts: readonly (string | undefined)[] = [before?.text, after?.text, made];
        await resources.comments.update(event.data.object.id, { likes: likes + texts.length });
      },
    },
    either: {
      events: ['tickets.created', 'comments.deleted'],
      handler({ event }) {
        if (event.type === 'tickets.created') {
          const title: string = event.data.object.title;
          const slug: string | undefined = event.data.object.slug;
          return void [title, slug];
        }
        const text: string = event.data.object.text;
        return void text;
      },
    },
    // Posted events and patterns have objects of unknown members.
    posted: {
      events: ['invoices.paid', 'tickets.*', 'day.closed.*', 'endpoint.disabled'],
      orderBy: (event) => event.data.object.customer,
      handler({ event, before }) {
        const amount: unknown = event.data.object.amount;
        return void [amount, before?.anything, event.type === 'tickets.merged'];
      },
    },
  },
  jobs: {
    nightly: {
      every: '1h',
      async run({ resources }) {
        await resources.tickets.list({
          filter: { slug: 'it-drips', words: { gt: 1 }, 'address.city': 'Bonn', labels: 'urgent' },
          sort: ['-slug', 'address.city', '-address.floor', 'createdAt'],
        });
        const found = await resources.tickets.get('id');
        const shown: readonly (string | undefined)[] = [found?.slug, found?.deletedAt, found?.address?.city];
        const made = await resources.tickets.create({ title: String(shown) });
        const status: 'open' | 'solved' = made.status;
        await resources.tickets.replace(made.id, { title: 'x', status, address: { city: 'Bonn', floor: 1 } });
        for await (const ticket of resources.tickets.all({ filter: { status: 'open' }, sort: ['-slug'] })) {
          const slug: string | undefined = ticket.slug;
          await resources.tickets.update(ticket.id, { title: String(slug) });
        }
        for await (const account of resources.users.all()) account.email.trim();
      },
    },
  },
});

// The calls of the configuration are those that a function elsewhere asks for.
export const job = async ({ resources }: JobRun<Desk>): Promise<void> => {
  for await (const { text } of resources.comments.all()) text.trim();
};
export const handler: Handler<Desk> = async ({ resources }) => {
  await resources.tickets.list({ filter: { and: [{ slug: 'x' }, { status: { ne: 'open' } }] } });
};
export const again = defineConfig({
  collections: { tickets, comments },
  jobs: { job: { every: '1h', run: job } },
  senders: { own: { preset: 'standard', handler } },
});

// Functions elsewhere that do not say which collections there are fit too.
const anyHandler: Handler = async ({ resources }) => {
  await resources.comments?.list({ filter: { likes: 1 } });
};
const anyJob = {
  every: '1h',
  async run({ resources }: JobRun) {
    for await (const { id } of resources.tickets?.all() ?? []) await resources.tickets?.delete(id);
  },
};
const anySubscriber = {
  events: ['comments.created'] as const,
  async handler({ event, resources }: EventHandling<{ ticketId: string }>) {
    await resources.tickets?.get(event.data.object.ticketId);
  },
};
export const third = defineConfig({
  collections: { tickets, comments },
  senders: { own: { preset: 'standard', handler: anyHandler } },
  jobs: { anyJob },
  subscribers: { anySubscriber },
});

const Order = Type.Object({
  item: Type.String(),
  sku: Type.String(),
  state: Type.Enum(['new', 'paid'], { default: 'new' }),
  labels: Type.Record(Type.String(), Type.String(), { default: {} }),
  pair: Type.Tuple([Type.String(), Type.Integer()], { default: ['x', 1] }),
  note: Type.Union([Type.String(), Type.Null()], { default: null }),
  free: Type.Unknown({ default: null }),
  size: Type.Unsafe<1 | 2>(Type.Integer({ default: 1 })),
  ship: Type.Object({ city: Type.String(), country: Type.String({ default: 'DE' }) }),
  customerId: Type.String(),
  orderedBy: Type.Optional(Type.String()),
  cost: Type.Integer(),
});

/** One input, one patch and one output type. */
export const ordering = defineConfig({
  collections: {
    orders: collection({
      schema: Order,
      readOnly: { state: 'administrator', cost: 'administrator' },
      hidden: { cost: 'administrator' },
      stamp: { orderedBy: 'principal' },
      unpatchable: ['sku'],
      tenantField: 'customerId',
      examples: [{ item: 'x', sku: 'x', ship: { city: 'Bonn' }, customerId: 'c', cost: 1 }],
    }),
  },
  jobs: {
    order: {
      every: '1h',
      async run({ resources: { orders } }) {
        const fields = { item: 'x', sku: 'x', ship: { city: 'Bonn' }, customerId: 'c', cost: 1 };
        const made = await orders.create(fields);
        // A default is in every document, and what a function gives for a stamped member stays.
        const state: 'new' | 'paid' = made.state;
        await orders.create({ ...fields, state, orderedBy: 'somebody' });
        await orders.replace(made.id, fields);
        // Within an object, a patch changes what it names; null gives a member with a default its default.
        await orders.update(made.id, { ship: { city: 'Rome' }, state: null, note: null, orderedBy: null });
        await orders.update(made.id, { ship: { country: null }, pair: ['y', 2], labels: { a: 'b' } });
      },
    },
  },
});
type NameOf<C extends { readonly collections: object }> = keyof C['collections'];
export const names: readonly NameOf<typeof ordering>[] = ['orders'];
export const namesOfTwo: readonly NameOf<typeof configuration>[] = ['tickets', 'comments'];

const Step = Type.Cyclic(
  { Step: Type.Object({ name: Type.String(), next: Type.Optional(Type.Ref('Step')) }) },
  'Step',
);
const Plan = Type.Object({
  first: Step,
  anything: Type.Any(),
  unknown: Type.Unknown(),
  names: Type.Record(Type.String(), Type.String()),
  parts: Type.Array(Type.Object({ name: Type.String() })),
  note: Type.Union([Type.String(), Type.Null()]),
});

/** Schemas that contain themselves, and those of which the compiler knows little. */
export const planning = defineConfig({
  collections: { plans: collection({ schema: Plan, indexes: ['first.name', 'note'], search: ['note'] }) },
  jobs: {
    look: {
      every: '1h',
      async run({ resources }) {
        await resources.plans.list({
          filter: { 'first.next.name': 'x', note: null, anything: 5, unknown: 'x' },
          sort: ['-first.name'],
        });
        const names = { any: 'x' };
        const fields = { anything: 1, unknown: [2], names, parts: [], note: null };
        await resources.plans.create({ ...fields, first: { name: 'x', next: { name: 'y' } } });
      },
    },
  },
});
