/** A WebSocket of `comity.v1` over a real socket, by `ws`: what it was told, and how it ended. */
import WebSocket from 'ws';

export type Frame = {
  readonly subscribed?: readonly string[];
  readonly error?: string;
  readonly event?: {
    readonly id: string;
    readonly type: string;
    readonly data: { readonly object: Record<string, unknown> };
  };
};

export type Opened = {
  readonly frames: readonly Frame[];
  say(frame: unknown): void;
  /** The first frame that fits, which may have come already. */
  saw(fits: (frame: Frame) => boolean): Promise<Frame>;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  end(): void;
};

export type Refused = {
  readonly status: number;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
};

export type OpenOptions = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly subprotocols?: readonly string[];
};

/** @throws what it was refused with, as `Refused` */
export function openRealtime(port: number, options: OpenOptions = {}): Promise<Opened> {
  const { headers = {}, query = '', subprotocols = ['comity.v1'] } = options;
  const url = `ws://127.0.0.1:${port}/api/v1/realtime${query}`;
  const socket = new WebSocket(url, [...subprotocols], { headers });
  const frames: Frame[] = [];
  const watches = new Set<() => void>();
  socket.on('message', (text) => {
    frames.push(JSON.parse(String(text)) as Frame);
    for (const look of watches) look();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  const saw = (fits: (frame: Frame) => boolean): Promise<Frame> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = frames.find(fits);
        if (found === undefined) return;
        watches.delete(look);
        resolve(found);
      };
      watches.add(look);
      look();
    });
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('unexpected-response', (_request, response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => {
        reject({ status: response.statusCode, fields: response.headers, body: JSON.parse(text) });
      });
    });
    socket.on('open', () => {
      resolve({
        frames,
        saw,
        closed,
        say: (frame) => socket.send(JSON.stringify(frame)),
        end: () => socket.terminate(),
      });
    });
  });
}

/** What an attempt is refused with; fails where it is not. */
export async function refusalOf(port: number, options: OpenOptions = {}): Promise<Refused> {
  let opened: Opened;
  try {
    opened = await openRealtime(port, options);
  } catch (refused) {
    return refused as Refused;
  }
  opened.end();
  throw new Error('the WebSocket was opened');
}
