/** One cell of the matrix: the request, and what of the answer differs from what the tables say. */
import { request } from 'node:http';
import { type Answer, asAdministrator, base, type Client } from '../../../harness/account-client.ts';
import type { Carried } from './credentials.ts';
import type { CollectionName, OperationName, Permitted, Refusal } from './expectations.ts';

/** What there is to be seen of one collection: a resource with a title of its own. */
export type Target = { readonly id: string; readonly title: string };

/** What every stream is asked for: the events after this one, up to the page that has this title. */
export type Stretch = { readonly after: string; readonly marker: string };

const patch = { body: 'changed' };

export async function askCell(
  client: Client,
  operation: OperationName,
  collection: CollectionName,
  target: Target,
  carried: Carried,
): Promise<Answer> {
  const path = `${base}/${collection}`;
  const { headers } = carried;
  const ask = (method: string, to: string, json?: unknown) =>
    client.ask(method, withQuery(to, carried.query), json === undefined ? { headers } : { headers, json });
  switch (operation) {
    case 'GET':
      return ask('GET', `${path}/${target.id}`);
    case 'list':
      return ask('GET', `${path}?title=${encodeURIComponent(target.title)}`);
    case 'QUERY':
      return ask('QUERY', path, { filter: { title: target.title } });
    case 'POST':
      return ask('POST', path, { title: 'made by the matrix' });
    case 'PATCH':
      return ask('PATCH', `${path}/${target.id}`, patch);
    case 'DELETE':
      return ask('DELETE', `${path}/${target.id}`);
    case 'bulk-delete':
      return ask('POST', `${path}/bulk-delete`, { ids: [target.id] });
    case 'stream':
      throw new Error('streams are read by readStretch');
  }
}

export function withQuery(path: string, query: string | undefined): string {
  if (query === undefined) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/** What differs, in words; empty when nothing does. */
export function differences(answer: Answer, permitted: Permitted, target: Target): readonly string[] {
  if ('refusal' in permitted) return refusalDifferences(answer, permitted.refusal);
  const status = 'status' in permitted ? permitted.status : 200;
  if (answer.status !== status) return [`${status} was to come, and ${answer.status} ${answer.body} came`];
  const found: string[] = [];
  const challenge = answer.headers['www-authenticate'];
  if (challenge !== undefined) found.push(`a good request is challenged with ${challenge}`);
  if ('seen' in permitted) {
    const ids = (answer.json().items as { id: string }[]).map(({ id }) => id);
    const seen = ids.includes(target.id);
    if (seen !== permitted.seen) found.push(seen ? 'it is shown' : 'it is not shown');
  }
  if ('deleted' in permitted && answer.json().deleted !== permitted.deleted) {
    found.push(`${permitted.deleted} were to be deleted, not ${answer.body}`);
  }
  return found;
}

export function refusalDifferences(answer: Answer, refusal: Refusal): readonly string[] {
  const challenges = answer.headers['www-authenticate'];
  const body = answer.body.startsWith('{') ? answer.json() : {};
  const came = { status: answer.status, error: body.error, code: body.code, challenges };
  const found: string[] = [];
  for (const name of ['status', 'error', 'code', 'challenges'] as const) {
    if (came[name] !== refusal[name])
      found.push(`${name}: ${refusal[name]} was to come, and ${came[name]} came`);
  }
  return found;
}

export type Stretched = { readonly answer: Answer; readonly titles: ReadonlySet<string> };

/** Longer than an open stream ever waits between what is already in the log. */
const streamMsMax = 10_000;

/** Reads the event stream over the stretch: the titles of what it showed, or the refusal that came instead. */
export function readStretch(client: Client, carried: Carried, stretch: Stretch): Promise<Stretched> {
  const headers = { ...carried.headers, Accept: 'text/event-stream', 'Last-Event-ID': stretch.after };
  const path = withQuery(`${base}/events`, carried.query);
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port: client.port, path, headers, agent: false },
      (response) => {
        let text = '';
        const end = (): void => {
          const answer: Answer = {
            status: response.statusCode ?? 0,
            headers: response.headers,
            rawHeaders: response.rawHeaders,
            body: text,
            json: () => JSON.parse(text) as Record<string, unknown>,
          };
          resolve({ answer, titles: titlesIn(text) });
          asked.destroy();
        };
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
          if (response.statusCode === 200 && text.includes(stretch.marker) && text.endsWith('\n\n')) end();
        });
        response.on('end', end);
        response.on('error', () => undefined);
      },
    );
    asked.setTimeout(streamMsMax, () => asked.destroy(new Error('the stream showed no marker')));
    asked.on('error', reject);
    asked.end();
  });
}

function titlesIn(text: string): ReadonlySet<string> {
  const titles = new Set<string>();
  for (const line of text.split('\n')) {
    if (!line.startsWith('data:')) continue;
    const event = JSON.parse(line.slice('data:'.length)) as { data: { object: { title?: string } } };
    if (event.data.object.title !== undefined) titles.add(event.data.object.title);
  }
  return titles;
}

/** Makes one resource of the collection as whoever may. */
export async function makeTarget(
  client: Client,
  collection: CollectionName,
  title: string,
  maker: Carried,
): Promise<Target> {
  const asked = { json: { title }, headers: maker.headers };
  const answer = await client.ask('POST', `${base}/${collection}`, asked);
  if (answer.status !== 201) throw new Error(`no ${title} was made: ${answer.status} ${answer.body}`);
  return { id: String(answer.json().id), title };
}

/** The id of the event that tells of the resource. */
export async function eventOf(client: Client, target: Target): Promise<string> {
  const path = `${base}/events?data.object.id=${target.id}`;
  const answer = await client.ask('GET', path, { headers: asAdministrator });
  const [event] = answer.json().items as { id: string }[];
  if (event === undefined) throw new Error(`no event tells of ${target.title}`);
  return event.id;
}
