/**
 * The resources in a handler's thread (config/handler.ts): each call is a message to the program. The number of
 * concurrent calls of a run is bounded; further ones wait here, bounded by the thread's heap.
 */
import { type HandledResource, type HandlerResources, ResourceRefused } from '../../../config/handler.ts';
import type { ResourceCall } from '../hand-on.ts';
import type { FromThread, Refusal } from './handler-protocol.ts';

const callsUnderWayMax = 64;

type Waiting = {
  readonly call: ResourceCall;
  readonly resolve: (text: string | undefined) => void;
  readonly reject: (error: Error) => void;
};

export class ThreadCalls {
  readonly resources: HandlerResources;
  readonly #run: number;
  readonly #post: (message: FromThread) => void;
  readonly #underWay = new Map<number, Waiting>();
  readonly #waiting: Waiting[] = [];
  #seq = 0;
  #over = false;
  #idle: PromiseWithResolvers<void> | undefined;
  /** Refusal of a call that was under way when the handler returned, which the handler cannot see. */
  #lateRefusal: Error | undefined;

  constructor(run: number, post: (message: FromThread) => void) {
    this.#run = run;
    this.#post = post;
    this.resources = resourcesOver((call) => this.#call(call));
  }

  /** Waits, after the handler returned, for calls that it did not await. Rejects if one of them is refused. */
  async settled(): Promise<void> {
    if (this.#underWay.size > 0) {
      this.#idle = Promise.withResolvers();
      await this.#idle.promise;
    }
    if (this.#lateRefusal !== undefined) throw this.#lateRefusal;
  }

  /** Refuses all further calls. */
  end(): void {
    this.#over = true;
    for (const { reject } of [...this.#underWay.values(), ...this.#waiting]) reject(isOver());
    this.#underWay.clear();
    this.#waiting.length = 0;
  }

  result(seq: number, text: string | undefined): void {
    this.#take(seq)?.resolve(text);
    this.#next();
  }

  refused(seq: number, { code, message }: Refusal): void {
    const error = new ResourceRefused(code, message);
    if (this.#idle !== undefined) this.#lateRefusal ??= error;
    this.#take(seq)?.reject(error);
    this.#next();
  }

  #call(call: ResourceCall): Promise<string | undefined> {
    if (this.#over) return Promise.reject(isOver());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    while (this.#underWay.size < callsUnderWayMax) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#seq += 1;
      this.#underWay.set(this.#seq, next);
      this.#post({ kind: 'call', run: this.#run, seq: this.#seq, call: next.call });
    }
    if (this.#underWay.size === 0) this.#idle?.resolve();
  }

  #take(seq: number): Waiting | undefined {
    const found = this.#underWay.get(seq);
    this.#underWay.delete(seq);
    return found;
  }
}

function isOver(): ResourceRefused {
  return new ResourceRefused('request_timeout', 'the time for this message is over, or it was handled');
}

function resourcesOver(ask: (call: ResourceCall) => Promise<string | undefined>): HandlerResources {
  const resource = async (call: ResourceCall): Promise<HandledResource> =>
    JSON.parse((await ask(call)) ?? 'null') as HandledResource;
  return {
    async read(collection, id) {
      const text = await ask({ do: 'read', collection, id });
      return text === undefined ? undefined : (JSON.parse(text) as HandledResource);
    },
    async list(collection, query = {}) {
      const text = await ask({ do: 'list', collection, query: JSON.stringify(query) });
      return (JSON.parse(text ?? '{"items":[]}') as { items: readonly HandledResource[] }).items;
    },
    create: async (collection, fields, { id, owner } = {}) =>
      resource({ do: 'create', collection, fields: textOf(fields), id, owner }),
    replace: async (collection, id, fields) =>
      resource({ do: 'replace', collection, id, fields: textOf(fields) }),
    patch: async (collection, id, patch) => resource({ do: 'patch', collection, id, patch: textOf(patch) }),
    async delete(collection, id) {
      await ask({ do: 'delete', collection, id });
    },
    async emit(type, object, { tenant } = {}) {
      await ask({ do: 'emit', type, object: textOf(object), tenant });
    },
  };
}

/** Dates become texts and undefined members are omitted, as in any content. */
function textOf(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
