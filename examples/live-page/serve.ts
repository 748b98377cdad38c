/**
 * Serves the page: `node examples/live-page/serve.ts`, then http://127.0.0.1:4200. Comity lets pages of other origins in by name:
 * `COMITY_CORS_ORIGINS=http://127.0.0.1:4200 npm start`. A project of your own has a bundler in this place.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';

const { PORT = '4200' } = process.env;
const own = (name: string) => readFile(new URL(name, import.meta.url), 'utf8');
/** The folder of the package that has the client and what it loads later. */
const client = new URL('.', import.meta.resolve('comity/client'));
const clientFile = /^\/client\/([\w-]+\.js)$/;

async function contentOf(path: string): Promise<readonly [type: string, content: string]> {
  const [, file] = clientFile.exec(path) ?? [];
  if (file !== undefined) return ['text/javascript', await readFile(new URL(file, client), 'utf8')];
  if (path === '/page.js') return ['text/javascript', stripTypeScriptTypes(await own('./page.ts'))];
  return ['text/html', await own('./index.html')];
}

const server = createServer(async ({ url = '/' }, response) => {
  try {
    const [type, content] = await contentOf(url.split('?', 1)[0] ?? '/');
    response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8` });
    response.end(content);
  } catch {
    response.writeHead(404).end(); // There is no such file.
  }
});

server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : PORT;
  console.log(`page on http://127.0.0.1:${port}`);
});
