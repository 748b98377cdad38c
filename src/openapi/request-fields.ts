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
      'Content codings that the client takes; `br` and `gzip` are offered for longer representations.',
    example: 'br, gzip',
  },
  'Content-Encoding': {
    description: 'The coding of the content: `gzip`, `deflate`, `br` or `zstd`.',
    example: 'gzip',
  },
  'If-Match': {
    description:
      'Only if one of these entity tags, compared strongly, is what stands; otherwise 412. `*`: only if anything stands.',
    example: '"42"',
  },
  'If-Modified-Since': {
    description: '304 unless changed since. Ignored beside If-None-Match.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  'If-None-Match': {
    description:
      'Only if none of these entity tags is what stands: otherwise 304 for a read, 412 for a change. `*` with PUT: only create.',
    example: '"42"',
  },
  'If-Unmodified-Since': {
    description: 'Only if not changed since; otherwise 412. Ignored beside If-Match.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  'Idempotency-Key': {
    description:
      'Sending the same request again with the same key gives the first answer and does nothing twice. A structured string.',
    example: '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
    schema: { type: 'string', minLength: 1 },
  },
  'Last-Event-ID': {
    description: 'Where a stream broke off: it goes on after this event.',
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
  const demand = 'This collection takes changes only against a known version: 428 without it.';
  return components.intern('parameters', 'If-Match.demanded', {
    ...item,
    description: `${description} ${demand}`,
    required,
  });
}

const preferenceMeanings: Readonly<Record<string, string>> = {
  'return=minimal': 'no content in the answer',
  'return=representation': 'the representation in the answer',
  'respond-async': '202 at once, and the change later',
  'count=exact': 'the length of the whole list in X-Total-Count',
};

function prefer(preferences: readonly string[], components: Components): Item {
  const lines = preferences.map((preference) => `\`${preference}\`: ${preferenceMeanings[preference] ?? ''}`);
  return components.intern('parameters', 'Prefer', {
    name: 'Prefer',
    in: 'header',
    description: `Preferences (RFC 7240), several with commas between. ${lines.join('; ')}.`,
    schema: { type: 'string' },
    example: preferences[0],
  });
}
