/**
 * Types of the parts of `ws` that this folder uses: @types/ws describes neither the receiver nor the extensions, though
 * the package exports both. Its WebSocket class is not used: it needs HTTP/1.1, and keeps a sender for each socket.
 */
import type { Writable } from 'node:stream';
import * as ws from 'ws';

/** Reads frames and assembles messages (RFC 6455 §5); emits `message`, `ping`, `pong`, `conclude`, `error`. */
export type Receiver = Writable & {
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): Receiver;
  on(event: 'ping' | 'pong', listener: (data: Buffer) => void): Receiver;
  on(event: 'conclude', listener: (code: number, reason: Buffer) => void): Receiver;
};

export type ReceiverOptions = {
  readonly allowSynchronousEvents: boolean;
  readonly extensions: { readonly 'permessage-deflate'?: MessageInflater };
  readonly isServer: boolean;
  readonly maxBufferedChunks: number;
  readonly maxFragments: number;
  readonly maxPayload: number;
};

/** The receiver's permessage-deflate extension, called once for each frame of a compressed message. */
export type MessageInflater = {
  /** Calls back in a later turn: the receiver does not support a synchronous call. */
  decompress(data: Buffer, fin: boolean, callback: (error: Error | null, data?: Buffer) => void): void;
};

export type ExtensionParameters = { readonly [name: string]: string | number | boolean };
type Offers = { readonly [extension: string]: readonly object[] };

type WsExports = {
  readonly Receiver: new (options: ReceiverOptions) => Receiver;
  readonly Sender: {
    frame(
      data: Uint8Array,
      options: { fin: boolean; opcode: number; mask: boolean; readOnly: boolean; rsv1: boolean },
    ): readonly Uint8Array[];
  };
  readonly PerMessageDeflate: new (options: {
    readonly isServer: boolean;
    readonly serverNoContextTakeover: boolean;
    readonly clientNoContextTakeover: boolean;
  }) => { accept(offers: readonly object[]): ExtensionParameters };
  readonly extension: {
    parse(value: string): Offers;
    format(extensions: { readonly [extension: string]: readonly object[] }): string;
  };
};

export const { Receiver, Sender, PerMessageDeflate, extension } = ws as unknown as WsExports;
