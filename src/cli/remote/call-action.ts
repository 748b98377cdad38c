/**
 * `comity call`: calls an action of the application. Its method is what OPTIONS allows at its path, so that no description is needed, which
 * callers may not be permitted to read.
 */
import { CommandFailure, exitCodes, usageFailure } from '../failure.ts';
import { type Members, readObject } from '../option-values.ts';
import type { ServerClient } from '../server-client.ts';
import { writeOctets } from '../terminal.ts';
import type { Call, Printed } from './run-remote.ts';

type CallArguments = { readonly input?: string; readonly method?: string };

export async function callAction({
  terminal,
  server: open,
  names: [name = ''],
  options: { input, method: given },
  json,
}: Call<CallArguments>): Promise<Printed | number> {
  const members = input === undefined ? undefined : await readObject(terminal, '--input', input);
  const server = open();
  const path = `/${name.split('/').filter(Boolean).map(encodeURIComponent).join('/')}`;
  const method = given?.toUpperCase() ?? (await methodOf(server, path));
  const answer = await server.open(...requestOf(method, path, members));
  const location = answer.headers.get('Location');
  const type = answer.headers.get('Content-Type') ?? '';
  if (answer.status >= 300 && answer.status <= 399 && location !== null)
    return { json: { location }, text: location };
  if (!answer.ok) throw await server.refusal(answer);
  if (jsonType.test(type)) {
    const value: unknown = await answer.json();
    return { json: value, text: JSON.stringify(value, undefined, 2) };
  }
  if (json) {
    const octets = Buffer.from(await answer.arrayBuffer());
    return { json: type === '' ? null : { contentType: type, body: octets.toString('base64') } };
  }
  let last: number | undefined;
  await writeOctets(terminal.stdout, async (take) => {
    for await (const chunk of answer.body ?? []) {
      await take(chunk);
      last = chunk.at(-1) ?? last;
    }
  });
  if (type.startsWith('text/') && last !== lineBreak) terminal.out('');
  return exitCodes.done;
}

const lineBreak = 0x0a;
const jsonType = /^application\/(?:[\w.-]+\+)?json(?:;|$)/i;

/** Methods that every path has. */
const ownMethods: ReadonlySet<string> = new Set(['HEAD', 'OPTIONS', 'TRACE']);

async function methodOf(server: ServerClient, path: string): Promise<string> {
  const answer = await server.open(path, { method: 'OPTIONS' });
  if (answer.status !== 404 && !answer.ok) throw await server.refusal(answer);
  await answer.body?.cancel();
  if (answer.status === 404) throw new CommandFailure(`there is no action at ${server.api}${path}`);
  const allowed = answer.headers.get('Allow')?.split(', ') ?? [];
  const [method, ...others] = allowed.filter((each) => !ownMethods.has(each));
  if (method !== undefined && others.length === 0) return method;
  throw usageFailure(`${path} allows ${allowed.join(', ')}; --method chooses one`);
}

function requestOf(
  method: string,
  path: string,
  input: Members | undefined,
): Parameters<ServerClient['open']> {
  const init = { method, redirect: 'manual' } as const;
  if (input === undefined) return [path, init];
  if (method === 'GET' || method === 'DELETE')
    return [`${path}?${new URLSearchParams(pairsOf(input))}`, init];
  const headers = { 'Content-Type': 'application/json' };
  return [path, { ...init, headers, body: JSON.stringify(input) }];
}

/** As forms name members: an array by repetition, `address[city]` in an object. */
function pairsOf(value: unknown, name = ''): [string, string][] {
  if (Array.isArray(value)) return value.flatMap((item) => pairsOf(item, name));
  if (typeof value !== 'object' || value === null) return [[name, String(value)]];
  return Object.entries(value).flatMap(([member, of]) =>
    pairsOf(of, name === '' ? member : `${name}[${member}]`),
  );
}
