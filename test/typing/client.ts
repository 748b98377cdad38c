/**
 * What `comity/client` knows of a program, from the type of its configuration and from printed types: names and types that it must refuse. A
 * directive without an error below it is an error itself, so the check `compile` fails. The statements are never run.
 */
import { action, collection, defineConfig, output, Type } from 'comity';
import type { Api as Printed } from '../../examples/help-desk/api.ts';
import type desk from '../../examples/help-desk/comity.config.ts';
import type { Api, ApiAction, ApiCollection, ApiOf } from '../../src/client/api.ts';

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
holds<Same<Orders['create'], { customer: string; state?: 'open' | 'paid'; note?: string }>>();
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
