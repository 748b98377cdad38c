/**
 * Requests through a client in a program of its own, a line each way, with tabs between: method, URL, content in base64 and fields go in, and
 * status, content in base64 and fields come out, or `error` and its words. Nothing of this needs JSON, which not every language brings.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A client that retries waits for a second or two, and Java for its compiler. */
const answerMsMax = 20_000;

export type Sent = {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly content?: string;
};

/** `status` is 0 where the client reports an error, whose words are the content then. */
export type Answer = {
  readonly status: number;
  readonly content: string;
  readonly fields: ReadonlyMap<string, string>;
};

export type Agent = { send(sent: Sent): Promise<Answer>; stop(): Promise<void> };

export type Command = {
  readonly command: string;
  readonly args: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
};

/** Starts the program of a client. One that does not answer in time is ended, and the next request is an error too. */
export function startAgent({ command, args, settings = {} }: Command): Agent {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...settings },
  });
  let words = '';
  child.stderr.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(-500);
  });
  child.on('error', (error) => {
    words += error.message;
  });
  child.stdin.on('error', () => undefined); // Its end is seen by that of its output.
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const send = async ({ method, url, headers = {}, content = '' }: Sent): Promise<Answer> => {
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    child.stdin.write(`${[method, url, Buffer.from(content).toString('base64'), ...fields].join('\t')}\n`);
    const bound = setTimeout(() => child.kill('SIGKILL'), answerMsMax);
    const line = await lines.next();
    clearTimeout(bound);
    return answerOf(line.done === true ? `error\tended: ${words.replace(/\s+/g, ' ')}` : line.value);
  };
  return { send, stop: () => stop(child) };
}

function answerOf(line: string): Answer {
  const [status = '', content = '', ...fields] = line.split('\t');
  if (status === 'error') return { status: 0, content, fields: new Map() };
  return {
    status: Number(status),
    content: Buffer.from(content, 'base64').toString(),
    fields: new Map(
      fields.map((field) => {
        const [name = '', value = ''] = field.split(/: ?(.*)/s, 2);
        return [name.toLowerCase(), value];
      }),
    ),
  };
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) {
      resolve();
      return;
    }
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
