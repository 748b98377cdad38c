/**
 * One connection to the server that is judged, over TCP or TLS. Requests are octets, so that a judge can send what no HTTP client sends.
 * What is read, and the time that is waited, are bounded.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Answer, readAnswer } from './answer.ts';

export type Origin = {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** Take a certificate that no authority signed. */
  readonly isInsecure: boolean;
};

/** An answer, or the reason why there is none, a sentence. */
export type Outcome = Answer | { readonly none: string };

export type Connection = {
  write(octets: string | Uint8Array): void;
  /** The next answer. It ends after the time, and when the connection does. */
  answer(method: string, waitMs?: number): Promise<Outcome>;
  /** The octets that have come and are no answer yet, when they are enough, the connection ends, or the time does. */
  peek(waitMs: number, isEnough?: (octets: Buffer) => boolean): Promise<Buffer>;
  /** Resolves to true where the server ends the connection within the time. */
  ends(waitMs: number): Promise<boolean>;
  close(): void;
};

export const answerWaitMs = 10_000;
const answerBytesMax = 8 * 1024 * 1024;

export type Protocol = 'http/1.1' | 'h2';

/** @throws where no connection can be made */
export async function openConnection(origin: Origin, protocol: Protocol = 'http/1.1'): Promise<Connection> {
  const socket = await dial(origin, protocol);
  let octets: Buffer = Buffer.alloc(0);
  let failure: string | undefined;
  let isEnded = false;
  let wake: () => void = () => undefined;
  const end = (): void => {
    isEnded = true;
    wake();
  };
  socket.on('data', (chunk: Buffer) => {
    octets = Buffer.concat([octets, chunk]);
    if (octets.length > answerBytesMax) socket.destroy();
    wake();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failure = error.code ?? error.message;
  });
  socket.on('end', end);
  socket.on('close', end);

  /** Waits for octets, the end or the time. */
  async function waitUntil(deadline: number): Promise<boolean> {
    const left = deadline - Date.now();
    if (left <= 0) return false;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), left);
      wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  async function answer(method: string, waitMs = answerWaitMs): Promise<Outcome> {
    const deadline = Date.now() + waitMs;
    for (;;) {
      const read = readAnswer(octets, { method, isEnded });
      if (typeof read === 'string') return { none: read };
      if (read !== undefined) {
        octets = read.rest;
        return read;
      }
      if (octets.length > answerBytesMax)
        return { none: `the answer has more than ${answerBytesMax} octets` };
      if (isEnded) return { none: endedText(failure, octets.length) };
      if (!(await waitUntil(deadline))) return { none: `no answer came within ${waitMs} ms` };
    }
  }

  async function ends(waitMs: number): Promise<boolean> {
    const deadline = Date.now() + waitMs;
    while (!isEnded) if (!(await waitUntil(deadline))) return false;
    return true;
  }

  async function peek(waitMs: number, isEnough = hasOctets): Promise<Buffer> {
    const deadline = Date.now() + waitMs;
    while (!isEnough(octets) && !isEnded) if (!(await waitUntil(deadline))) break;
    return octets;
  }

  return {
    peek,
    write: (written) => void (socket.writable && socket.write(written)),
    answer,
    ends,
    close: () => socket.destroy(),
  };
}

function hasOctets({ length }: Buffer): boolean {
  return length > 0;
}

/** The message of what was thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function endedText(failure: string | undefined, length: number): string {
  const how = failure === undefined ? 'closed the connection' : `broke the connection (${failure})`;
  return length === 0 ? `the server ${how} without an answer` : `the server ${how} within its answer`;
}

function dial({ scheme, host, port, isInsecure }: Origin, protocol: Protocol): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket =
      scheme === 'http'
        ? connectTcp({ host, port })
        : connectTls({
            ...{ host, port, ALPNProtocols: [protocol], rejectUnauthorized: !isInsecure },
            // RFC 6066 §3: an address is no server name.
            ...(isIP(host) === 0 && { servername: host }),
          });
    const timer = setTimeout(() => socket.destroy(new Error('no connection within 10 s')), answerWaitMs);
    const settle = (finish: () => void) => () => {
      clearTimeout(timer);
      finish();
    };
    socket.setNoDelay(true);
    socket.once('error', (error) => settle(() => reject(error))());
    socket.once(
      scheme === 'http' ? 'connect' : 'secureConnect',
      settle(() => resolve(socket)),
    );
  });
}
