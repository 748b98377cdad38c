/** Notes in memory with Express, as its guide has routing, `express.json()` and `res.status`. The port is PORT. */
import { randomUUID } from 'node:crypto';
import express from 'express';

const notes = new Map();
const app = express();
const missing = { error: 'not found' };
const hasTitle = (body) => typeof body?.title === 'string';

app.use(express.json());
app.get('/notes', (_request, response) => {
  response.json([...notes.values()]);
});
app.post('/notes', ({ body }, response) => {
  if (!hasTitle(body)) return void response.status(400).json({ error: 'title is required' });
  const note = { ...body, id: randomUUID() };
  notes.set(note.id, note);
  response.status(201).location(`/notes/${note.id}`).json(note);
});
app.get('/notes/:id', ({ params }, response) => {
  const note = notes.get(params.id);
  response.status(note === undefined ? 404 : 200).json(note ?? missing);
});
app.put('/notes/:id', ({ params: { id }, body }, response) => {
  if (!notes.has(id)) return void response.status(404).json(missing);
  if (!hasTitle(body)) return void response.status(400).json({ error: 'title is required' });
  notes.set(id, { ...body, id });
  response.json(notes.get(id));
});
app.patch('/notes/:id', ({ params: { id }, body }, response) => {
  const before = notes.get(id);
  if (before === undefined) return void response.status(404).json(missing);
  notes.set(id, { ...before, ...body, id });
  response.json(notes.get(id));
});
app.delete('/notes/:id', ({ params }, response) => {
  if (notes.delete(params.id)) response.status(204).end();
  else response.status(404).json(missing);
});

app.listen(Number(process.env.PORT), '127.0.0.1');
