/**
 * Memory of what an action reads and writes (work-rules.ts): counted for its caller before a call is carried out, so that many actions at once
 * are refused before the memory is used up. The longest page of the action counts, because the next usually takes its place. Once the response
 * is a stream, its memory is that of the stream, and it waits for room for the largest page before it reads one.
 */
import type { HeldMemory, RequestMemory } from '../../http/message.ts';
import { workRules } from '../../memory/work-rules.ts';
import { StoreUnavailable } from '../../store/store.ts';
import type { ResourceCall } from '../transaction/resource-call.ts';

type CarryOut = (call: ResourceCall) => Promise<string | undefined>;

export class CallMemory {
  readonly #request: Pick<RequestMemory, 'hold'> | undefined;
  readonly #pageOctetsMax: number;
  #stream: HeldMemory | undefined;
  /** The octets of the longest page. */
  #kept = 0;

  constructor(request: Pick<RequestMemory, 'hold'> | undefined, pageBytesMax: number) {
    this.#request = request;
    this.#pageOctetsMax = workRules.pageOctet.octets * pageBytesMax;
  }

  /** The request has its response, and what it held is given back. */
  enter(stream: HeldMemory): void {
    this.#stream = stream;
    stream.set(this.#kept);
  }

  /** @throws StoreUnavailable if there is no room; a stream waits instead */
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
    if (this.#request?.hold(octets) !== false) return;
    throw new StoreUnavailable('the memory budget for actions is used up', { retryAfterSeconds: 1 });
  }
}

function lengthOf(call: ResourceCall): number {
  const text = 'fields' in call ? call.fields : 'patch' in call ? call.patch : undefined;
  return typeof text === 'string' ? text.length : 0;
}
