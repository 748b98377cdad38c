/** One round of each client at a real Comity: account, document, QUERY, conditional requests, a content that is too large, an event stream. */
import { send } from '../conduct/program.ts';
import type { Agent, Answer } from './line-exchange.ts';

const json = { 'Content-Type': 'application/json' };
/** Twice the default of COMITY_BODY_BYTES_MAX. */
const tooLarge = JSON.stringify({ title: 'x'.repeat(2 * 1024 * 1024) });

export const steps = ['register', 'create', 'QUERY', '304', '412', '413', 'event'] as const;

/** A word for each step: `yes`, or what was seen instead. */
export async function roundOf(agent: Agent, url: string): Promise<readonly string[]> {
  const api = `${url}/api/v1`;
  const title = `note ${crypto.randomUUID()}`;
  const account = { email: `${crypto.randomUUID()}@shop.example`, password: 'correct horse' };
  const registered = await agent.send({
    ...{ method: 'POST', url: `${api}/auth/register`, headers: json, content: JSON.stringify(account) },
  });
  // A client that cannot register or create is judged by the other steps all the same.
  const { token } = JSON.parse(
    registered.status === 201
      ? registered.content
      : JSON.stringify(await send(`${api}/auth/register`, account)),
  );
  const headers = { ...json, Authorization: `Bearer ${token}` };
  const created = await agent.send({
    ...{ method: 'POST', url: `${api}/notes`, headers, content: JSON.stringify({ title }) },
  });
  if (created.status !== 201) await send(`${api}/notes`, { title }, { headers });
  const found = await fetch(`${api}/notes?title=${encodeURIComponent(title)}`, { headers });
  const member = `${api}/notes/${((await found.json()) as { items: { id: string }[] }).items[0]?.id}`;
  const etag = (await fetch(member, { headers })).headers.get('etag') ?? 'none';
  const queried = await agent.send({
    ...{ method: 'QUERY', url: `${api}/notes`, headers, content: JSON.stringify({ filter: { title } }) },
  });
  const { Authorization } = headers;
  const unchanged = await agent.send({
    ...{ method: 'GET', url: member, headers: { Authorization, 'If-None-Match': etag } },
  });
  const change = { url: member, headers: { ...headers, 'If-Match': '"stale"' }, content: '{"done":true}' };
  const stale = await agent.send({ method: 'PATCH', ...change });
  const large = await agent.send({ method: 'POST', url: `${api}/notes`, headers, content: tooLarge });
  const event = await agent.send({
    method: 'GET',
    url: `${api}/events?after=`,
    headers: { Authorization, Accept: 'text/event-stream' },
  });
  return [
    seen(registered, 201),
    seen(
      created,
      201,
      created.fields.get('etag') === etag && member.endsWith(created.fields.get('location') ?? '-'),
    ),
    seen(queried, 200, queried.content.includes(title)),
    seen(unchanged, 304),
    seen(stale, 412, stale.content !== ''),
    seen(large, 413),
    seen(event, 200, event.content.includes('data:')),
  ];
}

function seen({ status, content }: Answer, expected: number, isRight = true): string {
  if (status === expected && isRight) return 'yes';
  if (status === 0) return content.slice(0, 80).replaceAll('|', '/');
  return status === expected ? 'another content' : String(status);
}
