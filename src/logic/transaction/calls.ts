/**
 * What an application's functions call (model/logic/logic.ts), over one function that carries out a call as data: on a thread it sends a
 * message to the program, in the program it asks the transaction.
 */

import type { CollectionCalls, Resources } from '../../model/logic/collection-calls.ts';
import type { Emit, Mail, MailAttachment, OutgoingMail } from '../../model/logic/logic.ts';
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
        await carryOut({ do: 'mail', mail: mailText(mail) });
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
      const text = await carryOut({ do: 'list', collection, query: JSON.stringify(query) });
      return (JSON.parse(text ?? '{"items":[]}') as { items: readonly AnyDocument[] }).items;
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

/** JSON has no octets: those of attachments become base64. */
function mailText(mail: OutgoingMail): string {
  const attachments: unknown = mail?.attachments;
  if (!Array.isArray(attachments)) return textOf(mail);
  const inText = attachments.map((each: unknown) => {
    const { content, ...file } = (each ?? {}) as Partial<MailAttachment>;
    if (!(content instanceof Uint8Array)) return each;
    const { buffer, byteOffset, byteLength } = content;
    return { ...file, content: { base64: Buffer.from(buffer, byteOffset, byteLength).toString('base64') } };
  });
  return textOf({ ...mail, attachments: inText });
}

/** Dates become texts and undefined members are omitted, as in any content. */
function textOf(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
