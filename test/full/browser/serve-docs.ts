/** Serves a document and its pages with the header fields that the program sends with them. */
import { createServer } from 'node:http';
import type { DocsAsset } from '../../../src/openapi/docs-assets.ts';
import { type Listening, listen } from '../../harness/listening.ts';

export async function serveDocs(document: unknown, assets: readonly DocsAsset[]): Promise<Listening> {
  const byPath = new Map(assets.map((asset) => [asset.path, asset]));
  const json = JSON.stringify(document);
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const asset = byPath.get(path);
    if (asset !== undefined) {
      response.writeHead(200, [
        'Content-Type',
        asset.mediaType,
        'Cache-Control',
        asset.cacheControl,
        ...asset.fields,
      ]);
      response.end(await asset.read());
    } else if (path === '/openapi.json') {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(json);
    } else {
      response.writeHead(404);
      response.end();
    }
  });
  return listen(server);
}
