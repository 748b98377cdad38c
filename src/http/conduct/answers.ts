/** The successful ends of the decision graph. With the refusals of http/problem.ts, they are every status of a resource request (§7). */

export const answers = {
  server_options: { status: 204, section: '§4.8.1', meaning: 'The capabilities of the server.' },
  trace: { status: 200, section: '§4.11.2', meaning: 'The received request as message/http.' },
  preflight: { status: 204, section: '§4.8.2', meaning: 'The requests that a page of the origin may send.' },
  options: { status: 204, section: '§4.8.1', meaning: 'The capabilities of the resource.' },
  stream: { status: 200, section: '§6.2', meaning: 'Events as they happen, text/event-stream.' },
  conversation: {
    status: 101,
    section: '§4.13.2',
    meaning: 'The connection becomes a WebSocket; over HTTP/2 the stream does, and the status is 200.',
  },
  representation: {
    status: 200,
    section: '§4.2.1',
    meaning: 'The selected representation, or a query result.',
  },
  partial: {
    status: 206,
    section: '§4.2.7',
    meaning: 'The octets of the representation that Range selects; several ranges as multipart/byteranges.',
  },
  fields: { status: 204, section: '§4.3.4', meaning: 'The fields are the state of the resource.' },
  not_modified: { status: 304, section: '§4.2.2', meaning: 'The stored response is still valid.' },
  see_other: { status: 303, section: '§4.12.1', meaning: 'The result is at another URI, in Location.' },
  repeat_elsewhere: {
    status: 307,
    section: '§4.12.3, RFC 9110 §15.4.8',
    meaning: 'Repeat the request at the URI in Location.',
  },
  moved: {
    status: 308,
    section: '§4.12.3, RFC 9110 §15.4.9',
    meaning: 'Repeat the request, and all later ones, at the URI in Location.',
  },
  accepted: { status: 202, section: '§4.1.10', meaning: 'Queued; Location shows its progress.' },
  queued: { status: 202, section: '§4.1.10', meaning: 'Accepted; Location shows its outcome.' },
  created: { status: 201, section: '§4.4.2', meaning: 'Created, with Location.' },
  created_see_other: {
    status: 303,
    section: '§4.12.1',
    meaning: 'Created by a browser form; follow Location.',
  },
  changed: {
    status: 200,
    section: '§4.5.1, §4.6.1',
    meaning: 'Changed or carried out, with a representation.',
  },
  changed_silently: {
    status: 204,
    section: 'RFC 7240 §4.2',
    meaning: 'Changed; the client asked for no content.',
  },
  deleted: { status: 204, section: '§4.7.3', meaning: 'Deleted.' },
  deleted_representation: {
    status: 200,
    section: '§4.1.9',
    meaning: 'Deleted, with the last representation.',
  },
} as const satisfies Record<string, { status: number; section: string; meaning: string }>;

export type AnswerName = keyof typeof answers;
