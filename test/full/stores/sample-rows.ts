/** The rows that lists and queries are asked over: bodies of POST as text, and what is told about them is nothing. */
import { extras, integers, numbers, texts, times } from './awkward.ts';

/** One row for each text, with the other members taken in turn, so that each value meets many others and is missing at times. */
export function sampleBodies(groupIds: readonly string[]): readonly string[] {
  return texts.map((text, at) => {
    const members = [`"name":${JSON.stringify(text)}`];
    const add = (name: string, written: string | undefined) => {
      if (written !== undefined) members.push(`"${name}":${written}`);
    };
    add('score', at % 7 === 3 ? undefined : at % 7 === 5 ? 'null' : numbers[at % numbers.length]);
    add('count', at % 4 === 1 ? undefined : integers[at % integers.length]);
    add('flag', at % 3 === 2 ? undefined : String(at % 3 === 0));
    add('at', at % 5 === 4 ? undefined : JSON.stringify(times[at % times.length]));
    add(
      'note',
      at % 3 === 0 ? undefined : at % 3 === 1 ? 'null' : JSON.stringify(texts[texts.length - 1 - at]),
    );
    add('kind', at % 4 === 2 ? undefined : at % 4 === 3 ? '"odd"' : '"plain"');
    add('tags', tagsOf(at));
    add('marks', at % 2 === 0 ? `[${numbers[at % numbers.length]},${at}]` : undefined);
    add('switches', ['[true]', '[false,true]', '[]', undefined][at % 4]);
    add('place', placeOf(at));
    add('extra', at % 2 === 0 ? undefined : extras[at % extras.length]);
    const groupId = groupIds[at % (groupIds.length + 1)];
    add('groupId', groupId === undefined ? undefined : JSON.stringify(groupId));
    if (at % 6 === 0) add('code', JSON.stringify(`code ${text}`));
    if (at % 6 === 1) add('serial', String(at / 10));
    return `{${members.join(',')}}`;
  });
}

function tagsOf(at: number): string | undefined {
  const [one, other] = [texts[at], texts[(at * 7) % texts.length]];
  return [undefined, '[]', JSON.stringify([one]), JSON.stringify([one, other]), '["a","a","A"]'][at % 5];
}

function placeOf(at: number): string | undefined {
  const city = JSON.stringify(texts[(at * 3) % texts.length]);
  const height = numbers[(at * 5) % numbers.length];
  const odd = JSON.stringify({ 'Odd-name_1': `odd ${at}` });
  return [undefined, '{}', `{"city":${city}}`, `{"city":${city},"geo":{"height":${height}}}`, odd][at % 5];
}
