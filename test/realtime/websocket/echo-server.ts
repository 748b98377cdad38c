/** A server of each protocol in the test's own process, whose every request becomes a WebSocket with the conversation that a test gives. */
import { createServer } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import type { Conversation, ConversationPeer } from '../../../src/http/message.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { converseHttp1, converseHttp2 } from '../../../src/realtime/websocket/converse.ts';
import { createFleet } from '../../../src/realtime/websocket/frames.ts';
import type { OpenSocket } from '../../../src/realtime/websocket/websocket-wire.ts';
import { type Listening, listen } from '../../harness/listening.ts';
import { ampleLease } from '../../memory/ample.ts';

export type Protocol = 'HTTP/1.1' | 'HTTP/2';
export const protocols: readonly Protocol[] = ['HTTP/1.1', 'HTTP/2'];

export const limits = {
  realtimePingMs: 30_000,
  realtimeMessageBytesMax: 128 * 1024,
  realtimeBufferBytesMax: 256 * 1024,
  realtimeCloseMs: 2000,
  answerStallTimeoutMs: 30_000,
  realtimeCompression: 'on',
  realtimeCompressionBytesMin: 1024,
} as const;

export type ServerOptions = {
  readonly limits?: Partial<{ -readonly [name in keyof typeof limits]: number | 'on' | 'off' }>;
  readonly conversation?: (socketIndex: number) => Conversation;
  readonly fields?: readonly string[];
};

export class EchoServer {
  readonly facts: Observation[] = [];
  /** Open WebSockets in the order in which they came. */
  readonly sockets = new Set<OpenSocket>();
  readonly #options: ServerOptions;
  readonly #limits: typeof limits;
  readonly #fleet: ReturnType<typeof createFleet>;
  readonly #http1 = createServer();
  readonly #http2 = createHttp2Server({ settings: { enableConnectProtocol: true } });
  /** In the order of `protocols`. */
  readonly #listening: Listening[] = [];
  #opened = 0;
  readonly #onFact: (() => void)[] = [];

  private constructor(options: ServerOptions) {
    this.#options = options;
    this.#limits = { ...limits, ...options.limits } as typeof limits;
    this.#fleet = createFleet(this.#limits);
    this.#http1.on('upgrade', (incoming, socket, head) => {
      const made = converseHttp1(
        { incoming, socket, head },
        this.#converse(() => this.sockets.delete(made)),
      );
      this.sockets.add(made);
    });
    this.#http2.on('stream', (stream, _fields, _flags, rawFields) => {
      const made = converseHttp2(
        { stream: stream as ServerHttp2Stream, rawFields },
        this.#converse(() => this.sockets.delete(made)),
      );
      this.sockets.add(made);
    });
  }

  static async start(options: ServerOptions = {}): Promise<EchoServer> {
    const made = new EchoServer(options);
    for (const server of [made.#http1, made.#http2]) made.#listening.push(await listen(server));
    return made;
  }

  port(protocol: Protocol): number {
    return this.#listening[protocols.indexOf(protocol)]?.port ?? 0;
  }

  /** How many WebSockets were opened; the number of the last of them is one less. */
  get opened(): number {
    return this.#opened;
  }

  /** The fact that a WebSocket has closed, by its number, once there is one. */
  async closed(index: number): Promise<{ readonly code: number; readonly by: string }> {
    for (;;) {
      for (const fact of this.facts) {
        if (fact.kind === 'websocket-closed' && fact.peer === String(index))
          return { code: fact.code, by: fact.by };
      }
      await new Promise<void>((resolve) => this.#onFact.push(resolve));
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#listening.map(({ close }) => close()));
  }

  #converse(onClosed: () => void) {
    this.#opened += 1;
    return {
      conversation: this.#options.conversation?.(this.#opened - 1) ?? echo(),
      fields: this.#options.fields ?? [],
      peer: String(this.#opened - 1),
      limits: this.#limits,
      fleet: this.#fleet,
      memory: ampleLease(),
      observe: (fact: Observation) => {
        this.facts.push(fact);
        for (const listener of this.#onFact.splice(0)) listener();
      },
      onClosed,
    };
  }
}

/** Sends back what comes. */
export function echo(subprotocol?: string): Conversation {
  return conversation((peer, text) => peer.send(text), subprotocol);
}

export function conversation(
  onMessage: (peer: ConversationPeer, text: string) => void,
  subprotocol?: string,
): Conversation {
  return {
    subprotocol,
    open: (peer) => ({ onMessage: (text) => onMessage(peer, text), onClosed: () => undefined }),
  };
}
