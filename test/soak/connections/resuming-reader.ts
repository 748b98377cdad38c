/**
 * A WebSocket that is cut again and again and resumes after the last event that it has: it must get every event once, in one order. It
 * keeps the ids in the order in which they came.
 */
import { WebSocket } from 'ws';
import { adminKey } from '../../harness/exchange.ts';

const reopenMs = 50;

export type ResumingReader = {
  readonly ids: readonly string[];
  /** How often it was cut. */
  readonly cuts: () => number;
  /** Cuts it now. */
  cut(): void;
  /** Resolves when an event with this id has come. */
  awaitEvent(id: string): Promise<void>;
  stop(): Promise<void>;
};

/** @param after id of an event before all that it is to get */
export function startResuming(port: number, pattern: string, after: string): ResumingReader {
  const ids: string[] = [];
  const awaited = new Map<string, () => void>();
  let cuts = 0;
  let isStopped = false;
  let last = after;
  let socket = open();

  function open(): WebSocket {
    const opened = new WebSocket(`ws://127.0.0.1:${port}/api/v1/realtime`, 'comity.v1', {
      headers: { authorization: `Bearer ${adminKey}` },
    });
    opened.on('error', () => undefined);
    opened.once('open', () => opened.send(JSON.stringify({ subscribe: [pattern], after: last })));
    opened.on('message', (data) => {
      const { event } = JSON.parse(String(data)) as { event?: { id: string } };
      // What comes after the cut is lost to a client that was cut.
      if (event === undefined || opened !== socket) return;
      ids.push(event.id);
      last = event.id;
      awaited.get(event.id)?.();
    });
    opened.once('close', () => {
      if (isStopped) return;
      setTimeout(() => {
        if (!isStopped) socket = open();
      }, reopenMs);
    });
    return opened;
  }

  return {
    ids,
    cuts: () => cuts,
    cut() {
      cuts += 1;
      socket.terminate();
    },
    awaitEvent: (id) =>
      new Promise((resolve) => {
        if (ids.includes(id)) resolve();
        else awaited.set(id, resolve);
      }),
    async stop() {
      isStopped = true;
      if (socket.readyState === WebSocket.CLOSED) return;
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.terminate();
      await closed;
    },
  };
}
