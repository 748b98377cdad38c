/** Texts that a string schema may allow: by its format, by its pattern, or of the length that it asks for. */
import { patternSample } from './pattern-sample.ts';

type TextSchema = Readonly<Record<string, unknown>>;

const formats: Readonly<Record<string, string>> = {
  'date-time': '2026-08-01T09:30:00.000Z',
  date: '2026-08-01',
  time: '09:30:00Z',
  duration: 'P1D',
  email: 'ada@shop.example',
  'idn-email': 'ada@shop.example',
  hostname: 'shop.example',
  'idn-hostname': 'shop.example',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://shop.example/',
  url: 'https://shop.example/',
  iri: 'https://shop.example/',
  'uri-reference': '/orders/1',
  'iri-reference': '/orders/1',
  'uri-template': 'https://shop.example/orders/{id}',
  uuid: '01890a5d-ac96-774b-bcce-b302099a8057',
  'json-pointer': '/orders/0',
  'json-pointer-uri-fragment': '#/orders/0',
  'relative-json-pointer': '0',
  regex: '^a+$',
};

/** Longest text that is made; a schema that asks for more has no sample. */
const charactersMax = 65_536;
/** Different texts of one schema: an array may want them unique. */
const variantsMax = 100;

export function* textCandidates(schema: TextSchema): Generator<string> {
  const least = Math.min(Number(schema.minLength ?? 0), charactersMax);
  const most = Math.min(Number(schema.maxLength ?? charactersMax), charactersMax);
  const format = typeof schema.format === 'string' ? formats[schema.format] : undefined;
  if (format !== undefined) yield format;
  if (typeof schema.pattern === 'string') {
    for (const repeats of new Set([1, 0, 2, 3, least, Math.ceil(least / 2)])) {
      const text = patternSample(schema.pattern, repeats);
      if (text !== undefined) yield text;
    }
  }
  yield ofLength('text', least, most);
  for (let number = 1; number <= variantsMax; number += 1) {
    yield ofLength(`${number}`, least, most);
    yield ofLength(`text ${number}`, least, most);
  }
}

function ofLength(text: string, least: number, most: number): string {
  return text.padEnd(least, 'x').slice(0, Math.max(0, most));
}
