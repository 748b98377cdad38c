/**
 * What `comity/client` knows of a program, from the type of its configuration and from printed types: names and types that it must refuse. A
 * directive without an error below it is an error itself, so the check `compile` fails. The statements are never run.
 */
import {
  action,
  collection,
  defineConfig,
  File,
  type FileReference,
  type FileValue,
  output,
  Type,
} from 'comity';
import type { Api as Printed } from '../../examples/help-desk/api.ts';
import type desk from '../../examples/help-desk/comity.config.ts';
import {
  type Api,
  type ApiAction,
  type ApiCollection,
  type ApiOf,
  createClient,
} from '../../src/client/index.ts';

/** Compiles where the two types are the same. */
type Same<T, U> = [T] extends [U] ? ([U] extends [T] ? true : never) : never;
const holds = <_ extends true>(): void => undefined;

export const configuration = defineConfig({
  collections: {
    orders: collection({
      schema: Type.Object({
        customer: Type.String(),
        state: Type.Enum(['open', 'paid'], { default: 'open' }),
        note: Type.Optional(Type.String()),
        bill: Type.Optional(File({ bytesMax: 1000 })),
        scans: Type.Array(File({ bytesMax: 1000 }), { maxItems: 2, default: [] }),
      }),
      references: { customer: { collection: 'orders' } },
      actions: {
        pay: action({
          on: 'member',
          method: 'POST',
          path: '/payments/{provider}',
          input: Type.Object({ amount: Type.Number(), currency: Type.String({ default: 'EUR' }) }),
          output: Type.Object({ paid: Type.Boolean() }),
          codes: ['declined'],
          handler: () => ({ paid: true }),
        }),
        report: action({ on: 'collection', method: 'QUERY', output: output.text(), handler: () => '' }),
      },
    }),
  },
  actions: { ping: action({ method: 'GET', handler: () => undefined }) },
  eventTypes: { 'invoice.paid': { schema: Type.Object({ invoiceId: Type.String() }) }, 'day.closed': {} },
});

type Shop = ApiOf<typeof configuration>;
type Orders = Shop['collections']['orders'];
holds<Same<keyof Shop['collections'], 'orders' | 'users'>>();
holds<Same<Orders['document']['state'], 'open' | 'paid'>>();
holds<
  Same<
    Orders['create'],
    {
      customer: string;
      state?: 'open' | 'paid';
      note?: string;
      bill?: FileReference;
      scans?: FileReference[];
    }
  >
>();
holds<Same<Orders['document']['bill'], FileValue | undefined>>();
holds<Same<Orders['patch']['bill'], FileReference | null | undefined>>();
holds<Same<Orders['patch']['scans'], FileReference[] | null | undefined>>();
holds<Same<Orders['patch']['note'], string | null | undefined>>();
holds<Same<Orders['references']['customer'], 'orders'>>();
holds<Same<Orders['actions']['pay']['route'], 'POST /payments/{provider}'>>();
holds<Same<Orders['actions']['pay']['input'], { amount: number; currency?: string }>>();
holds<Same<Orders['actions']['pay']['codes'], 'declined'>>();
holds<Same<Orders['actions']['report']['route'], 'QUERY /report'>>();
holds<Same<Orders['actions']['report']['output'], string>>();
holds<Same<Shop['actions']['ping']['route'], 'GET /ping'>>();
holds<Same<Shop['actions']['ping']['output'], undefined>>();
holds<Same<Shop['events']['invoice.paid'], { invoiceId: string }>>();

export const parcels = defineConfig({
  collections: {
    parcels: collection({
      schema: Type.Object({
        to: Type.String(),
        sku: Type.String(),
        firm: Type.String(),
        weight: Type.Integer(),
        cost: Type.Integer(),
        packedBy: Type.Optional(Type.String()),
      }),
      readOnly: { weight: 'administrator' },
      hidden: { cost: 'administrator' },
      stamp: { packedBy: 'principal' },
      unpatchable: ['sku'],
      tenantField: 'firm',
    }),
  },
});
type Parcel = ApiOf<typeof parcels>['collections']['parcels'];
// What the server sets for some callers may be left out, what it sets for all is in no input, and some do not see all.
holds<Same<Parcel['create'], { to: string; sku: string; firm?: string; weight?: number; cost?: number }>>();
holds<Same<Parcel['patch'], { to?: string; weight?: number; cost?: number }>>();
holds<Same<Parcel['document']['cost'], number | undefined>>();
holds<Same<Parcel['document']['packedBy'], string | undefined>>();

type Desk = ApiOf<typeof desk>;
holds<Same<keyof Desk['collections'], 'organisations' | 'tickets' | 'comments' | 'users'>>();
holds<Same<Desk['collections']['users']['document']['role'], 'member' | 'lead' | undefined>>();
holds<Same<Desk['collections']['tickets']['actions']['merge']['output'], { moved: number }>>();

// Printed types are those of the configuration.
type DeskTickets = Desk['collections']['tickets'];
type Printing = Printed['collections'];
holds<Same<keyof Desk['collections'], keyof Printing>>();
holds<Same<DeskTickets['document'], Printing['tickets']['document']>>();
holds<Same<DeskTickets['create'], Printing['tickets']['create']>>();
holds<Same<DeskTickets['patch'], Printing['tickets']['patch']>>();
holds<Same<DeskTickets['references'], Printing['tickets']['references']>>();
holds<Same<DeskTickets['actions'], Printing['tickets']['actions']>>();
holds<Same<Desk['collections']['comments']['create'], Printing['comments']['create']>>();

/** The contract, as a whole and of its parts. */
export const contract = <A extends Api, C extends ApiCollection, E extends ApiAction>(): [A?, C?, E?] => [];
contract<Shop, Orders, Orders['actions']['pay']>();
contract<Desk, Desk['collections']['tickets'], Desk['collections']['tickets']['actions']['merge']>();

// Calls, with the types of the configuration and with printed ones.
const routes = { actions: { desk: 'GET /desk', client: 'GET /desk/{file}' } } as const;
const shop = createClient<typeof configuration>({
  baseUrl: '/api/v1',
  routes: {
    orders: { pay: 'POST /payments/{provider}', report: 'QUERY /report' },
    actions: { ping: 'GET /ping' },
  },
});
const printed = createClient<Printed>({ baseUrl: '/api/v1', routes });

const { tickets, comments } = printed;

export async function fittingCalls(): Promise<void> {
  const { items, included } = await tickets.list({
    filter: {
      status: 'open',
      priority: { in: ['urgent'] },
      'organisationId.name': 'Lighthouse',
      or: [{ body: null }],
    },
    sort: ['-createdAt', 'title'],
    fields: ['title', 'status'],
    expand: ['organisationId', 'assigneeId.organisationId'],
  });
  const [item] = items;
  holds<Same<keyof NonNullable<typeof item>, 'title' | 'status' | 'etag'>>();
  const name: string | undefined = included.organisations?.x?.name;
  const email: string | undefined = included.users?.x?.email;
  // @ts-expect-error no path leads to comments
  Object.assign({}, included.comments);
  // @ts-expect-error it was not selected
  Object.assign({}, { priority: item?.priority });
  const ticket = await tickets.get('x');
  const whole: 'open' | 'solved' | 'closed' = ticket.status;
  await tickets.update(ticket, { status: 'solved', body: null });
  const moved: number = (await tickets.actions.merge(ticket.id, { into: 'y' })).moved;
  const list = await comments.live({ filter: { ticketId: 'x' }, fields: ['text'] });
  const texts: readonly string[] = list.page.items.map(({ id, text }) => id + text);
  const { changed } = await tickets.updateMany({ filter: { status: 'open' }, patch: { status: 'closed' } });
  const [result] = await tickets.bulk([{ id: 'x', status: 'closed' }], { mode: 'merge' });
  const { created } = await tickets.import('title\nOne', {
    type: 'text/csv',
    mode: 'upsert',
    key: ['title'],
  });
  Object.assign({}, { name, email, whole, moved, texts, changed, result, created });
}

export async function mistakenCalls(ticket: Printed['collections']['tickets']['document']): Promise<void> {
  // @ts-expect-error no such field
  await tickets.list({ filter: { stauts: 'open' } });
  // @ts-expect-error no such value
  await tickets.list({ filter: { status: 'opne' } });
  // @ts-expect-error no such operator
  await tickets.list({ filter: { status: { equals: 'open' } } });
  // @ts-expect-error no such member
  await tickets.updateMany({ filter: {}, patch: { stauts: 'open' } });
  // @ts-expect-error no such mode
  await tickets.import('', { type: 'text/csv', mode: 'update' });
  // @ts-expect-error no such order
  await tickets.list({ sort: ['-titel'] });
  // @ts-expect-error no such member
  await tickets.list({ fields: ['titel'] });
  // @ts-expect-error it refers to nothing
  await tickets.list({ expand: ['title'] });
  // @ts-expect-error what it refers to has no such reference
  await tickets.list({ expand: ['organisationId.ownerId'] });
  // @ts-expect-error no such parameter
  await tickets.list({ limits: 5 });
  // @ts-expect-error a required member is missing
  await tickets.create({ title: 'One' });
  // @ts-expect-error the server sets it
  await tickets.create({ title: 'One', contact: 'a@b.example', id: 'x' });
  // @ts-expect-error no such member
  await tickets.update(ticket, { stauts: 'open' });
  // @ts-expect-error it cannot be removed
  await tickets.update(ticket, { title: null });
  // @ts-expect-error no such action
  await tickets.actions.close(ticket.id);
  // @ts-expect-error the input is missing
  await tickets.actions.merge(ticket.id);
  // @ts-expect-error no such input
  await tickets.actions.merge(ticket.id, { from: 'y' });
}

export async function furtherCalls(): Promise<void> {
  // @ts-expect-error no such collection
  await shop.order.list();
  // @ts-expect-error a member takes its id first
  await shop.orders.actions.pay({ amount: 1 }, { captures: { provider: 'card' } });
  // @ts-expect-error the part of the path is missing
  await shop.orders.actions.pay('x', { amount: 1 });
  const { paid } = await shop.orders.actions.pay('x', { amount: 1 }, { captures: { provider: 'card' } });
  const report: string = await shop.orders.actions.report();
  await shop.actions.ping();
  const bill: FileValue = await shop.orders.upload('x', 'bill', new Blob([]), {
    onProgress: () => undefined,
  });
  const scan: FileValue = await shop.orders.upload({ id: 'x' }, 'scans', new Blob([]));
  await shop.orders.update('x', { bill: { id: bill.id }, scans: [scan, { upload: 'file_x' }] });
  // @ts-expect-error it is no file
  await shop.orders.upload('x', 'note', new Blob([]));
  // @ts-expect-error it names no file
  await shop.orders.update('x', { bill: { name: 'x' } });
  const own = createClient<typeof desk>({ baseUrl: '/api/v1', routes });
  const { items: titles } = await own.tickets.list({ filter: { status: 'open' }, fields: ['title'] });
  holds<Same<keyof (typeof titles)[number], 'title' | 'etag'>>();
  // @ts-expect-error no such collection
  await own.tikets.list();
  await shop.events.post('invoice.paid', { invoiceId: 'x' });
  // @ts-expect-error no such type of event
  await shop.events.post('invoice.payed', { invoiceId: 'x' });
  for await (const event of shop.events.follow({ types: ['orders.created'] }))
    if (event.type !== undefined) holds<Same<typeof event.data.object.state, 'open' | 'paid'>>();
  // @ts-expect-error no such type of event
  shop.events.follow({ types: ['orders.creatd'] });
  const error: unknown = Object.assign({}, { paid, report });
  if (!shop.isError(error)) return;
  holds<'declined' | 'not_found' | 'network' extends typeof error.code ? true : never>();
  // @ts-expect-error no such code
  if (error.code === 'not-found') return;
}

export const mistakenClients = [
  // @ts-expect-error the routes are missing
  () => createClient<Printed>({ baseUrl: '/api/v1' }),
  () =>
    createClient<Printed>({
      baseUrl: '/api/v1',
      // @ts-expect-error another route
      routes: { actions: { ...routes.actions, desk: 'POST /desk' } },
    }),
  // @ts-expect-error no such option
  () => createClient<Printed>({ baseUrl: '/api/v1', routes, apiKey: 'sk_x' }),
];
