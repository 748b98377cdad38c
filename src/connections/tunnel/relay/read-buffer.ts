/**
 * Reading a TCP socket into memory that is there already, which Node offers for sockets that it opens (`onread` of net.connect) and not
 * for those that it accepts. The same switch is found on any socket here, by the names that Node gives its parts; where one of them
 * is missing, as it may be in another version, `canReadInto` says so and the relay reads as everybody does.
 *
 * Why: Node takes 64 KiB from the allocator for each read and gives them back to the collector. Through a relay on loopback, gigabytes for
 * each second of processor time, in one run on two shared cores: pipe() 0.66, 'data' and write() 0.6, this with 256 KiB 1.3, squid 0.8.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ignoreError, ownEmitter } from '../../../observe/own-emitter.ts';

export type ReadInto = {
  /** The octets are in the memory that was given, from its start; what is not copied when this returns is lost. False: read no more until `resume`. */
  readonly onOctets: (bytes: number) => boolean;
  /** Memory for the next read. */
  readonly next: () => Uint8Array;
};

type Parts = { readonly buffer: symbol; readonly callback: symbol; readonly generator: symbol };

type BufferedHandle = { useUserBuffer(memory: Uint8Array): void };

/** Finds what this version of Node calls them; undefined where it has no such parts. */
export function findReadBuffer(): Parts | undefined {
  const symbols = Object.getOwnPropertySymbols(ownEmitter(new Socket(), ignoreError));
  const named = (name: string) => symbols.find(({ description }) => description === name);
  const [buffer, callback, generator] = [named('kBuffer'), named('kBufferCb'), named('kBufferGen')];
  if (buffer === undefined || callback === undefined || generator === undefined) return undefined;
  return { buffer, callback, generator };
}

/** Whether a stream is a plain socket whose reads can be led elsewhere; TLS and HTTP/2 are not. */
export function canReadInto(stream: Duplex): stream is Socket {
  return stream instanceof Socket && !('encrypted' in stream) && handleOf(stream) !== undefined;
}

/** From now on what comes goes into `next()`; the socket gives no `data` any more, and its end as ever. It must have been read empty. */
export function readInto(parts: Parts, socket: Socket, { onOctets, next }: ReadInto): void {
  const memory = next();
  Object.assign(socket, { [parts.buffer]: memory, [parts.callback]: onOctets, [parts.generator]: next });
  handleOf(socket)?.useUserBuffer(memory);
}

function handleOf(socket: Socket): BufferedHandle | undefined {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null || !('useUserBuffer' in handle)) return undefined;
  return typeof handle.useUserBuffer === 'function' ? (handle as BufferedHandle) : undefined;
}
