/**
 * What an application's functions call (model/logic/logic.ts), over one function that carries out a call as data: on a thread it sends a
 * message to the program, in the program it asks the transaction.
 */

import { ResourceRefused } from '../../config/handler.ts';
import type { CollectionCalls, Resources } from '../../model/logic/collection-calls.ts';
import type { Emit, Mail } from '../../model/logic/logic.ts';
import type { ResourceCall } from './resource-call.ts';

/** @returns JSON text; undefined for nothing. Rejects with ResourceRefused */
export type CarryOut = (call: ResourceCall) => Promise<string | undefined>;

export type Calls = { readonly resources: Resources; readonly emit: Emit; readonly mail: Mail };

export function callsOver(carryOut: CarryOut): Calls {
  return {
    resources: new Proxy(noCollections, {
      // A name that is no collection is refused when it is called, with words.
      get: (_target, name) => (typeof name === 'string' ? collectionOver(carryOut, name) : undefined),
    }) as Resources,
    async emit(type, object, { tenant } = {}) {
      await carryOut({ do: 'emit', type, object: textOf(object), tenant });
    },
    mail: {
      async send(mail) {
        await carryOut({ do: 'mail', mail: textOf(mail) });
      },
    },
  };
}

const noCollections = Object.freeze(Object.create(null) as object);

type AnyDocument = Awaited<ReturnType<CollectionCalls<object>['create']>>;

function collectionOver(carryOut: CarryOut, collection: string): CollectionCalls<object> {
  const document = async (call: ResourceCall): Promise<AnyDocument> =>
    JSON.parse((await carryOut(call)) ?? 'null') as AnyDocument;
  return {
    async get(id) {
      const text = await carryOut({ do: 'get', collection, id });
      return text === undefined ? undefined : (JSON.parse(text) as AnyDocument);
    },
    async list(query = {}) {
      return pageOf(await carryOut({ do: 'list', collection, query: JSON.stringify(query) })).items;
    },
    async *all(selection = {}) {
      refuseOfPages(selection);
      for (let cursor: string | null | undefined = null; cursor !== undefined; ) {
        const query = JSON.stringify({ ...selection, cursor });
        const page = pageOf(await carryOut({ do: 'list', collection, query, largest: true }));
        yield* page.items;
        cursor = page.nextCursor ?? undefined;
      }
    },
    create: (fields, { id, owner } = {}) =>
      document({ do: 'create', collection, fields: textOf(fields), id, owner }),
    replace: (id, fields) => document({ do: 'replace', collection, id, fields: textOf(fields) }),
    update: (id, patch) => document({ do: 'update', collection, id, patch: textOf(patch) }),
    async delete(id) {
      await carryOut({ do: 'delete', collection, id });
    },
  };
}

type Page = { readonly items: readonly AnyDocument[]; readonly nextCursor: string | null };

function pageOf(text: string | undefined): Page {
  return text === undefined ? { items: [], nextCursor: null } : (JSON.parse(text) as Page);
}

/** Without types, the members of `list` could stand here, where they would silently have no effect. @throws ResourceRefused */
function refuseOfPages(selection: object): void {
  const found = ['limit', 'page', 'cursor', 'fields'].find((name) => name in selection);
  if (found === undefined) return;
  const message = `all takes filter, sort and q, and no ${found}: it reads every page; list reads one`;
  throw new ResourceRefused('query_parameter_invalid', message, 400);
}

/** Dates become texts and undefined members are omitted, as in any content. */
function textOf(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
