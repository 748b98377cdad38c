/**
 * The content of a request that its operation takes as it arrives (`Operation.receive`): opened once, when the operation asks for it, and hashed
 * on the way where an Idempotency-Key names it. A request that the program makes or repeats has its content already, and gives it in one piece.
 */
import { createHash } from 'node:crypto';
import { type ArrivingContent, ContentFailed, type Request } from '../../http/message.ts';
import type { Receiving } from '../resource.ts';

export class ReceivedOnce implements Receiving {
  readonly isDueNow: boolean;
  readonly #request: Pick<Request, 'readContent' | 'openContent'>;
  readonly #bytesMax: number;
  #digest: string | undefined;
  isOpened = false;
  /** Octets that were read. */
  bytes = 0;

  /** @param isDueNow the digest is asked for as soon as `receive` returns */
  constructor(
    request: Pick<Request, 'readContent' | 'openContent'>,
    { bytesMax, isDueNow }: { readonly bytesMax: number; readonly isDueNow: boolean },
  ) {
    this.#request = request;
    this.#bytesMax = bytesMax;
    this.isDueNow = isDueNow;
  }

  async open(): Promise<ArrivingContent> {
    this.isOpened = true;
    return this.#counted(await this.#open());
  }

  async #open(): Promise<ArrivingContent> {
    const request = this.#request;
    if (request.openContent !== undefined) {
      const opened = await request.openContent(this.#bytesMax);
      return opened.ok ? opened.content : fail(opened);
    }
    const received = await request.readContent(this.#bytesMax);
    return received.ok ? inOnePiece(received.bytes) : fail(received);
  }

  async *#counted(content: ArrivingContent): ArrivingContent & AsyncGenerator<Uint8Array> {
    const hash = this.isDueNow ? createHash('sha256') : undefined;
    for await (const chunk of content) {
      this.bytes += chunk.length;
      hash?.update(chunk);
      yield chunk;
    }
    this.#digest = hash?.digest('hex');
  }

  /** sha-256 of all octets, in hexadecimal. @throws {Error} if they were not read to the end: a defect of the operation */
  digest(): string {
    if (this.#digest === undefined)
      throw new Error('an operation did not read content that an Idempotency-Key names');
    return this.#digest;
  }
}

function fail({ ok: _, ...problem }: ConstructorParameters<typeof ContentFailed>[0] & { ok: false }): never {
  throw new ContentFailed(problem);
}

async function* inOnePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}
