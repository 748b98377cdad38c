/**
 * The successful ends of the decision graph. Refusals are the codes of problem.ts; together they are
 * every status that a resource request can be answered with (§7).
 */

export const answers = {
  server_options: { status: 204, section: '§4.8', meaning: 'What the server as a whole supports.' },
  trace: { status: 200, section: '§4.11', meaning: 'The received request as message/http.' },
  preflight: { status: 204, section: '§4.8', meaning: 'What a page of that origin may send.' },
  options: { status: 204, section: '§4.8', meaning: 'What this resource supports.' },
  stream: { status: 200, section: '§6', meaning: 'Events as they happen, text/event-stream.' },
  conversation: {
    status: 101,
    section: '§4.13',
    meaning: 'The connection becomes a WebSocket; over HTTP/2 the stream does, and the status is 200.',
  },
  representation: {
    status: 200,
    section: '§4.2',
    meaning: 'The selected representation, or a query result.',
  },
  not_modified: { status: 304, section: '§4.2', meaning: 'The stored response is still good.' },
  see_other: { status: 303, section: '§4.12', meaning: 'The result lies elsewhere.' },
  accepted: { status: 202, section: '§4.1', meaning: 'Queued; Location tells how it goes.' },
  queued: { status: 202, section: '§4.1', meaning: 'Taken on; Location tells what becomes of it.' },
  created: { status: 201, section: '§4.4', meaning: 'Made, with Location.' },
  created_see_other: { status: 303, section: '§4.12', meaning: 'Made by a browser form; follow Location.' },
  changed: { status: 200, section: '§4.5, §4.6', meaning: 'Changed or done, with its representation.' },
  changed_silently: { status: 204, section: 'RFC 7240 §4.2', meaning: 'Changed, no content asked for.' },
  deleted: { status: 204, section: '§4.7', meaning: 'Gone.' },
  deleted_representation: { status: 200, section: '§4.7', meaning: 'Gone, with what it was.' },
} as const satisfies Record<string, { status: number; section: string; meaning: string }>;

export type AnswerName = keyof typeof answers;
