/**
 * One direction of a relay: what a source gives is written to a sink, no more is read while the sink has something waiting, and the end of
 * the source ends the sink and nothing else. Errors and closing are the relay's. Two ways to do it: by the memory that all relays share,
 * between plain sockets, and by streams as Node has them, where TLS or HTTP/2 stands on either side.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RelayMemory } from './memory.ts';
import { readBytesMin } from './memory.ts';
import { type findReadBuffer, readInto } from './read-buffer.ts';

/** Called when octets were handed to the sink. */
export type OnCarried = (bytes: number) => void;

/** A sink that took longer than this is slow, and is read for by the smaller measure until it is not. */
const slowMs = 100;
/** Full reads in a row before the larger measure is used. */
const fullReads = 2;

export type BufferedFlow = {
  readonly parts: NonNullable<ReturnType<typeof findReadBuffer>>;
  readonly memory: RelayMemory;
  readonly monotonic: () => number;
};

/** Between plain sockets. What the source has been read already, and `head` before it, goes first. */
export function flowBuffered(
  { parts, memory, monotonic }: BufferedFlow,
  source: Socket,
  sink: Socket,
  onCarried: OnCarried,
): void {
  let waiting: Uint8Array | undefined;
  let waitingSinceMs = 0;
  let full = 0;
  const onWritten = (): void => {
    // Writes that the kernel took at once are called back for as well, a moment later.
    if (waiting === undefined || sink.writableLength > 0) return;
    memory.giveBack(waiting);
    waiting = undefined;
    if (monotonic() - waitingSinceMs > slowMs) full = 0;
    source.resume();
  };
  const onOctets = (bytes: number): boolean => {
    if (sink.destroyed || sink.writableEnded) return true;
    full = bytes >= readBytesMin ? full + 1 : 0;
    const stage = memory.stage(bytes);
    sink.write(bytes === stage.length ? stage : stage.subarray(0, bytes), onWritten);
    if (sink.writableLength === 0) memory.giveBack(stage);
    else {
      waiting = stage;
      waitingSinceMs = monotonic();
    }
    onCarried(bytes);
    return waiting === undefined;
  };
  // What came before it was known where to.
  for (let early = readAll(source); early !== undefined; early = readAll(source)) {
    sink.write(early);
    onCarried(early.length);
  }
  readInto(parts, source, { onOctets, next: () => (full < fullReads ? memory.small : memory.large) });
  source.on('end', () => sink.end());
  source.resume();
}

/** Between any streams. */
export function flowStreamed(source: Duplex, sink: Duplex, onCarried: OnCarried): void {
  source.on('data', (chunk: Uint8Array) => {
    if (sink.destroyed || sink.writableEnded) return;
    if (!sink.write(chunk)) source.pause();
    onCarried(chunk.length);
  });
  sink.on('drain', () => source.resume());
  // A stream that is reset with CANCEL ends first, and says in the same turn that it was aborted: then there is no end to pass on.
  source.on('end', () => setImmediate(() => void (sink.destroyed || sink.end())));
  source.resume();
}

function readAll(source: Socket): Uint8Array | undefined {
  const chunk: unknown = source.read();
  return chunk instanceof Uint8Array ? chunk : undefined;
}
