/**
 * The calls of an application's functions (model/logic/logic.ts), over one function that carries out a call as data: on a thread it sends a
 * message to the program, in the program it asks the transaction.
 */
import { ResourceRefused } from '../../config/senders.ts';
import type { CollectionCalls, Resources } from '../../model/logic/collection-calls.ts';
import type { Emit, Mail, MailAttachment, OutgoingMail } from '../../model/logic/logic.ts';
import { callForComity } from '../../observe/running-function.ts';
import { FunctionFailed, type Place, placed, placeOfCall } from '../function-failed.ts';
import type { ResourceCall } from './resource-call.ts';

/** @returns JSON text; undefined for nothing. Rejects with ResourceRefused */
export type CarryOut = (call: ResourceCall) => Promise<string | undefined>;

export type Calls = { readonly resources: Resources; readonly emit: Emit; readonly mail: Mail };

/** Gives the files of a document of the collection the method `open`. @returns the document */
export type Opened = <D>(collection: string, document: D) => D;

/** @param watch absent: a call that fails and is not awaited is an unhandled rejection, as any promise */
export function callsOver(carryOut: CarryOut, watch?: CallWatch, opened: Opened = unopened): Calls {
  const calling: Calling = { carryOut: (call) => callForComity(carryOut, call), watch, opened };
  return {
    resources: new Proxy(noCollections, {
      // A name that is no collection is refused when it is called, with words.
      get: (_target, name) => (typeof name === 'string' ? collectionOver(calling, name) : undefined),
    }) as Resources,
    emit: function emit(type, object, { tenant } = {}) {
      const call = () => ({ do: 'emit', type, object: textOf(object), tenant }) as const;
      return made(calling, emit, call, nothing);
    },
    mail: {
      send: function send(mail) {
        return made(calling, send, () => ({ do: 'mail', mail: mailText(mail) }), nothing);
      },
    },
  };
}

type Calling = {
  readonly carryOut: CarryOut;
  readonly watch: CallWatch | undefined;
  readonly opened: Opened;
};

function unopened<D>(_collection: string, document: D): D {
  return document;
}

const noCollections = Object.freeze(Object.create(null) as object);

type AnyDocument = Awaited<ReturnType<CollectionCalls<object>['create']>>;

function collectionOver(calling: Calling, collection: string): CollectionCalls<object> {
  const one = (text: string | undefined) => calling.opened(collection, found(text));
  const written = (text: string | undefined) => one(text) as AnyDocument;
  const page = (text: string | undefined): Page => {
    const { items, nextCursor } = pageOf(text);
    return { items: items.map((item) => calling.opened(collection, item)), nextCursor };
  };
  return {
    get: function get(id) {
      return made(calling, get, () => ({ do: 'get', collection, id }), one);
    },
    list: function list(query = {}) {
      const call = () => ({ do: 'list', collection, query: JSON.stringify(query) }) as const;
      return made(calling, list, call, (text) => page(text).items);
    },
    aggregate: function aggregate(query) {
      const asked = { do: 'list', collection, query: JSON.stringify(query) } as const;
      const call = () => (query.limit === undefined ? ({ ...asked, largest: true } as const) : asked);
      return made(calling, aggregate, call, (text) => pageOf(text).items as never);
    },
    all: async function* all(selection = {}) {
      refuseOfPages(selection);
      for (let cursor: string | null | undefined = null; cursor !== undefined; ) {
        const query = JSON.stringify({ ...selection, cursor });
        const call = () => ({ do: 'list', collection, query, largest: true }) as const;
        const read: Page = await made(calling, all, call, page);
        yield* read.items;
        cursor = read.nextCursor ?? undefined;
      }
    },
    create: function create(fields, { id, owner } = {}) {
      const call = () => ({ do: 'create', collection, fields: textOf(fields), id, owner }) as const;
      return made(calling, create, call, written);
    },
    replace: function replace(id, fields) {
      const call = () => ({ do: 'replace', collection, id, fields: textOf(fields) }) as const;
      return made(calling, replace, call, written);
    },
    update: function update(id, patch) {
      const call = () => ({ do: 'update', collection, id, patch: textOf(patch) }) as const;
      return made(calling, update, call, written);
    },
    delete: function remove(id) {
      return made(calling, remove, () => ({ do: 'delete', collection, id }), nothing);
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

/**
 * @param callee what the application called
 * @param call its content that is no JSON value is a rejection, not an exception
 */
function made<T>(
  { carryOut, watch }: Calling,
  callee: (...given: never[]) => unknown,
  call: () => ResourceCall,
  read: (text: string | undefined) => T,
): Promise<T> {
  const carried = async (): Promise<T> => read(await carryOut(call()));
  return watch === undefined ? carried() : watch.begin(carried(), placeOfCall(callee));
}

function nothing(): undefined {
  return undefined;
}

function found(text: string | undefined): AnyDocument | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as AnyDocument);
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

/**
 * The calls of one run of a function. Under way, they are waited for; one that fails without being awaited fails the
 * function. Once the function is settled, such a call is an unhandled rejection: nothing waits for it any more.
 */
export class CallWatch {
  readonly #named: string;
  /** They never reject. */
  readonly #underWay = new Set<Promise<void>>();
  readonly #unseen: Failed[] = [];
  #hasFailed = false;
  #isSettled = false;

  constructor(named: string) {
    this.#named = named;
  }

  get isBusy(): boolean {
    return this.#underWay.size > 0;
  }

  begin<T>(working: Promise<T>, place: Place): Promise<T> {
    const call = new WatchedCall<T>((resolve, reject) => {
      working.then(resolve, (error: unknown) => reject(placed(error, place)));
    });
    if (this.#isSettled) return call;
    const ended = call.watch(
      () => void this.#underWay.delete(ended),
      (error) => {
        this.#underWay.delete(ended);
        this.#hasFailed = true;
        if (!call.isAwaited) this.#unseen.push({ call, error, place });
      },
    );
    this.#underWay.add(ended);
    return call;
  }

  /** @throws FunctionFailed */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0 || this.#hasFailed) {
      this.#hasFailed = false;
      await Promise.all(this.#underWay);
      // Blocks that were not awaited go on after their calls. Node reports their errors between two turns.
      await new Promise((resolve) => void setImmediate(resolve));
    }
    this.#isSettled = true;
    const failed = this.#unseen.find(({ call }) => !call.isAwaited);
    if (failed === undefined) return;
    const told = failed.error instanceof Error ? failed.error.message : String(failed.error);
    const error = new FunctionFailed(`${this.#named} did not await a call, which failed: ${told}`);
    throw placed(error, failed.place);
  }
}

type Failed = {
  readonly call: { readonly isAwaited: boolean };
  readonly error: unknown;
  readonly place: Place;
};

/** Knows whether the application awaits it: `await` calls `then` of a subclass, and not of a plain promise. */
class WatchedCall<T> extends Promise<T> {
  isAwaited = false;

  /** What `then` returns is a plain promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  override then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isAwaited = true;
    return super.then(onValue, onError);
  }

  watch(onValue: () => void, onError: (error: unknown) => void): Promise<void> {
    return super.then(onValue, onError);
  }
}
