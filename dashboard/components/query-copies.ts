/** A query as a command for a shell, and as code for a program. Neither contains the credential of the caller. */
import { prefix } from '../send.ts';

type Query = { readonly path: string; readonly type: string; readonly text: string };

/** In quotes of a POSIX shell. */
export function curlOf({ path, type, text }: Query): string {
  const quote = (each: string) => `'${each.replaceAll("'", `'\\''`)}'`;
  return [
    'curl -X QUERY -H "X-API-Key: $COMITY_ADMIN_KEY"',
    `-H ${quote(`Content-Type: ${type}`)} -d ${quote(text)}`,
    `${location.origin}${prefix}${path}`,
  ].join(' ');
}

/** For any program with `fetch`. */
export function codeOf({ path, type, text }: Query): string {
  return `const response = await fetch(${JSON.stringify(`${location.origin}${prefix}${path}`)}, {
  method: 'QUERY',
  headers: { 'Content-Type': ${JSON.stringify(type)}, 'X-API-Key': process.env.COMITY_ADMIN_KEY },
  body: ${JSON.stringify(text)},
});
if (!response.ok) throw new Error(\`\${response.status} \${(await response.json()).error}\`);
const { items, nextCursor } = await response.json();
`;
}
