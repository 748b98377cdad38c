/** The simplest API of notes: it ignores conditions, and knows no times and no versions. */
import type { RequestListener } from 'node:http';

/** Notes in memory, as the first page of a framework's guide has them. */
export function plainNotes({ wrapper }: { readonly wrapper?: string } = {}): RequestListener {
  const notes = new Map<string, object>();
  return async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const send = (status: number, value?: unknown) =>
      response
        .writeHead(status, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(wrapper === undefined ? value : { [wrapper]: value, meta: {} }));
    const read = () => {
      const value = JSON.parse(content);
      return wrapper === undefined ? value : value[wrapper];
    };
    const content = Buffer.concat(chunks).toString();
    const [, id = ''] = /^\/notes\/(\w+)$/.exec(request.url ?? '') ?? [];
    if (request.method === 'POST') {
      const note = { ...read(), id: String(notes.size + 1) };
      notes.set(note.id, note);
      return send(201, note);
    }
    if (id === '') return send(200, [...notes.values()]);
    if (!notes.has(id)) return send(404, { error: 'not found' });
    if (request.method === 'PUT') notes.set(id, { ...read(), id });
    if (request.method === 'DELETE') return send(notes.delete(id) ? 204 : 404);
    return send(200, notes.get(id));
  };
}
