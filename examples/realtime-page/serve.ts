/**
 * Serves the page: `node examples/realtime-page/serve.ts`, then http://127.0.0.1:4200. Comity lets pages of other origins in by name:
 * `COMITY_CORS_ORIGINS=http://127.0.0.1:4200 npm start`.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const { PORT = '4200' } = process.env;
const page = new URL('./index.html', import.meta.url);

const server = createServer(async (_request, response) => {
  const content = await readFile(page);
  response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
  response.end(content);
});

server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : PORT;
  console.log(`page on http://127.0.0.1:${port}`);
});
