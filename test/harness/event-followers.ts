/** Followers of a program's events: its stream, read message by message, and a WebSocket that subscribes to everything. */
import assert from 'node:assert/strict';
import WebSocket from 'ws';
import { base } from './account-client.ts';
import type { RunningServer } from './running-server.ts';
import { until } from './until.ts';

export type Heard = { readonly id: string | undefined; readonly event: string; readonly data: string };

type Headers = Readonly<Record<string, string>>;

export type Followers = {
  /** Follows the event stream. @returns the messages, as they come */
  stream(headers: Headers, query?: string): Promise<Heard[]>;
  /** Subscribes over a WebSocket; `after` catches up. @returns the frames, as they come, after the answer */
  socket(headers: Headers, after?: string, patterns?: readonly string[]): Promise<string[]>;
  close(): void;
};

/** @param server called for each follower, since a suite starts it later */
export function createFollowers(server: () => Pick<RunningServer, 'url'>): Followers {
  const closing: (() => void)[] = [];
  return {
    async stream(headers, query = '') {
      const heard: Heard[] = [];
      const abort = new AbortController();
      closing.push(() => abort.abort());
      const answer = await fetch(`${server().url}${base}/events${query}`, {
        headers: { Accept: 'text/event-stream', ...headers },
        signal: abort.signal,
      });
      assert.equal(answer.status, 200);
      readInto(heard, answer.body).catch(() => undefined);
      return heard;
    },
    async socket(headers, after, patterns = ['*']) {
      const frames: string[] = [];
      const url = `${server().url.replace('http', 'ws')}${base}/realtime`;
      const socket = new WebSocket(url, 'comity.v1', { headers });
      closing.push(() => socket.terminate());
      socket.on('message', (data) => frames.push(String(data)));
      await new Promise((resolve, reject) => {
        socket.on('open', resolve);
        socket.on('error', reject);
      });
      socket.send(JSON.stringify({ subscribe: patterns, ...(after === undefined ? {} : { after }) }));
      await until(() => frames.length > 0, 'subscribed');
      return frames;
    },
    close() {
      for (const close of closing) close();
    },
  };
}

async function readInto(heard: Heard[], body: ReadableStream<Uint8Array> | null): Promise<void> {
  let text = '';
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString();
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const lines = new Map(
        text
          .slice(0, end)
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      text = text.slice(end + 2);
      const [event, data] = [lines.get('event'), lines.get('data')];
      if (event !== undefined && data !== undefined) heard.push({ id: lines.get('id'), event, data });
    }
  }
}
