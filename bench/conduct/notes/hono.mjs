/** Notes in memory with Hono on Node, as its guide has routing, `c.req.json()` and `c.json`. The port is PORT. */
import { randomUUID } from 'node:crypto';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { validator } from 'hono/validator';

const notes = new Map();
const app = new Hono();
const missing = { error: 'not found' };
const whole = validator('json', (value, c) =>
  typeof value?.title === 'string' ? value : c.json({ error: 'title is required' }, 400),
);
const part = validator('json', (value) => value);

app.get('/notes', (c) => c.json([...notes.values()]));
app.post('/notes', whole, (c) => {
  const note = { ...c.req.valid('json'), id: randomUUID() };
  notes.set(note.id, note);
  return c.json(note, 201, { Location: `/notes/${note.id}` });
});
app.get('/notes/:id', (c) => {
  const note = notes.get(c.req.param('id'));
  return note === undefined ? c.json(missing, 404) : c.json(note);
});
app.put('/notes/:id', whole, (c) => {
  const id = c.req.param('id');
  if (!notes.has(id)) return c.json(missing, 404);
  const note = { ...c.req.valid('json'), id };
  notes.set(id, note);
  return c.json(note);
});
app.patch('/notes/:id', part, (c) => {
  const id = c.req.param('id');
  const before = notes.get(id);
  if (before === undefined) return c.json(missing, 404);
  const note = { ...before, ...c.req.valid('json'), id };
  notes.set(id, note);
  return c.json(note);
});
app.delete('/notes/:id', (c) => (notes.delete(c.req.param('id')) ? c.body(null, 204) : c.json(missing, 404)));

serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' });
