/** Notes in memory with Fastify, as its guide has routes, schemas of contents and `reply.code`. The port is PORT. */
import { randomUUID } from 'node:crypto';
import Fastify from 'fastify';

const notes = new Map();
const app = Fastify();
const properties = { title: { type: 'string' }, done: { type: 'boolean' } };
const whole = { schema: { body: { type: 'object', required: ['title'], properties } } };
const part = { schema: { body: { type: 'object', properties } } };
const missing = { error: 'not found' };

app.get('/notes', () => [...notes.values()]);
app.post('/notes', whole, (request, reply) => {
  const note = { ...request.body, id: randomUUID() };
  notes.set(note.id, note);
  return reply.code(201).header('Location', `/notes/${note.id}`).send(note);
});
app.get('/notes/:id', ({ params }, reply) => notes.get(params.id) ?? reply.code(404).send(missing));
app.put('/notes/:id', whole, ({ params: { id }, body }, reply) => {
  if (!notes.has(id)) return reply.code(404).send(missing);
  const note = { ...body, id };
  notes.set(id, note);
  return note;
});
app.patch('/notes/:id', part, ({ params: { id }, body }, reply) => {
  const before = notes.get(id);
  if (before === undefined) return reply.code(404).send(missing);
  const note = { ...before, ...body, id };
  notes.set(id, note);
  return note;
});
app.delete('/notes/:id', ({ params }, reply) =>
  notes.delete(params.id) ? reply.code(204).send() : reply.code(404).send(missing),
);

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
