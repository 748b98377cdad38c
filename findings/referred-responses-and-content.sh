#!/usr/bin/env bash
# A response of an OpenAPI document that is a reference to a component, in clients that swagger-typescript-api generates.
#
# Guess: `"200": { "$ref": "#/components/responses/Item" }` means what the response means where it stands, in types and at run time.
# Seen (swagger-typescript-api 13.13.0): the type of `data` is the same, Item, but the client has no `format` for the request, so it does
# not read the content: `data` is null.
#
# Needs node, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm pkg set type=module
npm install --silent --no-audit --no-fund --ignore-scripts swagger-typescript-api@13.13.0 typescript@6.0.3
cat >document.json <<'JSON'
{
  "openapi": "3.0.3",
  "info": { "title": "Items", "version": "1" },
  "paths": {
    "/inline": {
      "get": {
        "operationId": "inline",
        "responses": {
          "200": {
            "description": "An item.",
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Item" } } }
          }
        }
      }
    },
    "/referred": {
      "get": { "operationId": "referred", "responses": { "200": { "$ref": "#/components/responses/Item" } } }
    }
  },
  "components": {
    "schemas": { "Item": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] } },
    "responses": {
      "Item": {
        "description": "An item.",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Item" } } }
      }
    }
  }
}
JSON
npx swagger-typescript-api generate --path document.json -o . -n api.ts >log 2>&1 || { cat log; exit 1; }
npx tsc api.ts --target es2022 --module nodenext --moduleResolution nodenext --outDir . >/dev/null 2>&1 || true
cat >look.mjs <<'JS'
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { Api } from './api.js';

const server = createServer((_request, response) => {
  response.setHeader('Content-Type', 'application/json');
  response.end('{"name":"kettle"}');
}).listen(0, '127.0.0.1', async () => {
  const { referred, inline } = new Api({ baseUrl: `http://127.0.0.1:${server.address().port}` });
  const types = [...readFileSync('api.ts', 'utf8').matchAll(/this\.request<(\w+), any>/g)].map(([, type]) => type);
  console.log(`types of data: ${types.join(', ')}`);
  console.log(`in place: ${JSON.stringify((await inline.inline()).data)}`);
  console.log(`referred to: ${JSON.stringify((await referred.referred()).data)}`);
  server.close();
});
JS
node look.mjs >seen
cat >expected <<'TEXT'
types of data: Item, Item
in place: {"name":"kettle"}
referred to: null
TEXT
cat seen
diff expected seen
