/**
 * `GET /`: a browser goes to the dashboard, or to the documentation where there is none (§4.12.1); a program gets the links of the API. The
 * resource has no credential and no limit, like the other documents of the program.
 */
import { preferredMediaType } from '../../http/syntax/accept.ts';
import { json } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { documentResource } from './document.ts';

const offers = ['application/json', 'text/html'];

/** @param base of the API, such as `/api/v1` */
export function entranceResource(base: string, hasDashboard: boolean): Resource {
  const links = {
    api: base,
    openapi: '/openapi.json',
    docs: '/docs',
    health: '/health/ready',
    ...(hasDashboard ? { dashboard: '/dashboard' } : {}),
  };
  const page = links.dashboard ?? links.docs;
  return documentResource({
    documentation: {
      name: 'Entrance',
      noun: 'the entrance',
      read: {
        id: 'readEntrance',
        summary: 'Read the links of the program',
        description: 'A client that prefers text/html gets a 303 redirect to the dashboard.',
        gives: {
          representation: json({
            type: 'object',
            properties: Object.fromEntries(Object.keys(links).map((name) => [name, { type: 'string' }])),
            required: Object.keys(links),
          }),
        },
      },
    },
    path: '/',
    mediaType: 'application/json',
    offers,
    cacheControl: 'no-cache',
    read: ({ request }) => {
      const { accept } = request.fields;
      return accept !== undefined && preferredMediaType(accept, offers) === 'text/html'
        ? { elsewhere: page }
        : { content: JSON.stringify(links) };
    },
  });
}
