/**
 * The request header fields that an operation reads, as parameters. Accept, Content-Type and Authorization are left
 * out: OpenAPI (Parameter Object, `in`) ignores them as parameters and has media types and security schemes instead.
 */

import type { Item } from '../kernel/documentation.ts';
import type { Components } from './components.ts';
import type { Traits } from './traits.ts';

type Name =
  | 'Accept-Encoding'
  | 'Content-Encoding'
  | 'If-Match'
  | 'If-Modified-Since'
  | 'If-None-Match'
  | 'If-Unmodified-Since'
  | 'Idempotency-Key'
  | 'Last-Event-ID';

const described: Readonly<
  Record<Name, { readonly description: string; readonly example: string; readonly schema?: Item }>
> = {
  'Accept-Encoding': {
    description:
      'Content codings that the client accepts; Comity uses `br` and `gzip` for longer representations.',
    example: 'br, gzip',
  },
  'Content-Encoding': {
    description: 'Coding of the content: `gzip`, `deflate`, `br` or `zstd`.',
    example: 'gzip',
  },
  'If-Match': {
    description:
      'Carries out the request only if the current entity tag is one of these (strong comparison); otherwise 412. `*`: only if the resource exists.',
    example: '"42"',
  },
  'If-Modified-Since': {
    description:
      'Answered 304 unless the resource changed after this time. Ignored if If-None-Match is sent.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  'If-None-Match': {
    description:
      'Carries out the request only if the current entity tag is none of these; otherwise 304 for a read, 412 for a change. `*` with PUT: only creates.',
    example: '"42"',
  },
  'If-Unmodified-Since': {
    description:
      'Carries out the request only if the resource has not changed after this time; otherwise 412. Ignored if If-Match is sent.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  'Idempotency-Key': {
    description:
      'A repeated request with the same key is carried out only once and gets the first response. A string of RFC 9651, in quotes.',
    example: '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
    schema: { type: 'string', minLength: 1 },
  },
  'Last-Event-ID': {
    description: 'Id of the last event received: the stream resumes after it.',
    example: 'evt_01kabcdefghjkmnpqrstvwxyz0',
  },
};

/** Returns references to the parameters, which are stored among the components. */
export function requestFields(
  traits: Traits,
  preferences: readonly string[],
  components: Components,
): readonly Item[] {
  const names: Name[] = [];
  const safe = traits.method === 'GET' || traits.method === 'HEAD' || traits.method === 'QUERY';
  if (traits.validators !== 'none') names.push('If-Match', 'If-None-Match');
  if (traits.validators === 'tag-and-date') names.push('If-Unmodified-Since');
  if (traits.validators === 'tag-and-date' && safe) names.push('If-Modified-Since');
  if (traits.idempotent) names.push('Idempotency-Key');
  if (traits.contentTypes.length > 0) names.push('Content-Encoding');
  if (safe) names.push('Accept-Encoding');
  if (traits.streams) names.push('Last-Event-ID');
  const parameters = names.map((name) => parameter(name, traits, components));
  return preferences.length === 0 ? parameters : [...parameters, prefer(preferences, components)];
}

function parameter(name: Name, traits: Traits, components: Components): Item {
  const { description, example, schema = { type: 'string' } } = described[name];
  const item = { name, in: 'header', description, schema, example };
  if (name !== 'If-Match' || !traits.matchRequired) return components.add('parameters', name, item);
  // A PUT that creates has nothing to match.
  const required = traits.creates === 'never';
  const demand = 'This collection requires it for changes: 428 without it.';
  return components.intern('parameters', 'If-Match.demanded', { required }, () => ({
    ...item,
    description: `${description} ${demand}`,
    required,
  }));
}

const preferenceMeanings: Readonly<Record<string, string>> = {
  'return=minimal': 'no content in the response',
  'return=representation': 'the representation in the response',
  'respond-async': '202 immediately, the change later',
  'count=exact': 'the length of the whole list in X-Total-Count',
  plan: 'how the list was read in Comity-Plan, for administrators',
  'wait=SECONDS': 'holds an empty page of the feed until something follows',
};

function prefer(preferences: readonly string[], components: Components): Item {
  const lines = preferences.map((preference) => `\`${preference}\`: ${preferenceMeanings[preference] ?? ''}`);
  return components.intern('parameters', 'Prefer', preferences, () => ({
    name: 'Prefer',
    in: 'header',
    description: `Preferences (RFC 7240), separated by commas. ${lines.join('; ')}.`,
    schema: { type: 'string' },
    example: preferences[0],
  }));
}
