/**
 * Memory of what the functions of one transaction read and write (work-rules.ts): counted before a call is carried out, for the caller of the
 * request, or for the source of the message. So many functions at once are refused before the memory is used up. The longest page counts,
 * because the next usually takes its place. Once the response of an action is a stream, its memory is that of the stream, and it waits for
 * room for the largest page before it reads one.
 */
import type { HeldMemory, RequestMemory } from '../../http/message.ts';
import { workRules } from '../../memory/work-rules.ts';
import { MemoryUnavailable } from '../../store/store.ts';
import type { ResourceCall } from './resource-call.ts';

type CarryOut = (call: ResourceCall) => Promise<string | undefined>;

export class CallMemory {
  readonly #memory: Pick<RequestMemory, 'hold'> | undefined;
  readonly #pageOctetsMax: number;
  #stream: HeldMemory | undefined;
  /** The octets of the longest page. */
  #kept = 0;

  constructor(memory: Pick<RequestMemory, 'hold'> | undefined, pageBytesMax: number) {
    this.#memory = memory;
    this.#pageOctetsMax = workRules.pageOctet.octets * pageBytesMax;
  }

  /** The request has its response, and what it held is given back. */
  enter(stream: HeldMemory): void {
    this.#stream = stream;
    stream.set(this.#kept);
  }

  /** @throws MemoryUnavailable if there is no room; a stream waits instead */
  async carryOut(call: ResourceCall, carryOut: CarryOut): Promise<string | undefined> {
    if (call.do === 'get') return carryOut(call);
    if (call.do !== 'list') {
      this.#hold(workRules.change.octets + workRules.bulkOctet.octets * lengthOf(call));
      return carryOut(call);
    }
    const stream = this.#stream;
    // The store bounds the pages that are read at once; a stream whose page is there and waits for memory would hold it uncounted.
    if (stream !== undefined)
      await new Promise<void>((resolve) => stream.whenRoom(this.#pageOctetsMax, resolve));
    try {
      const text = await carryOut(call);
      this.#keep(workRules.pageOctet.octets * (text?.length ?? 0));
      return text;
    } finally {
      stream?.set(this.#kept);
    }
  }

  #keep(octets: number): void {
    if (octets <= this.#kept) return;
    if (this.#stream === undefined) this.#hold(octets - this.#kept);
    this.#kept = octets;
  }

  #hold(octets: number): void {
    if (this.#memory?.hold(octets) !== false) return;
    throw new MemoryUnavailable('the memory budget for functions is used up', { retryAfterSeconds: 1 });
  }
}

function lengthOf(call: ResourceCall): number {
  const text = 'fields' in call ? call.fields : 'patch' in call ? call.patch : undefined;
  return typeof text === 'string' ? text.length : 0;
}
