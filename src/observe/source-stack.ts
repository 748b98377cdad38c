/**
 * Stacks of the bundle (docs/decisions/0063-the-program-is-a-bundle.md) with the files and lines of the sources, by the source maps beside
 * it. A map is read when a stack that is logged names its file, and scanned once: Node's own parser of source maps takes 60 ms for the
 * largest and would slow every start, the scan takes 8 ms.
 */
import { readFileSync } from 'node:fs';

/** A place in the bundle, counted from 0, and the place of the source that it comes from. */
type Place = { readonly line: number; readonly column: number; origin?: readonly [number, number, number] };

/** Errors repeat, and the places in the code are finite: a database that is down must not cost a scan for each error. */
export const placesKnownMax = 1000;

const placeInFile = /^[\w./-]+\.js:\d+:\d+/;

/** @param folder of the bundle, as a URL; by default that of this file */
export function createSourceStacks(folder: string = new URL('.', import.meta.url).href) {
  const known = new Map<string, string>();

  function learn(places: readonly string[]): void {
    if (known.size + places.length > placesKnownMax) known.clear();
    for (const [file, own] of Map.groupBy(places, (place) => place.slice(0, place.indexOf(':')))) {
      const origins = originsOf(new URL(`${file}.map`, folder), own);
      for (const place of own) known.set(place, origins.get(place) ?? `${folder}${place}`);
    }
  }

  return (stack: string): string => {
    const [before = '', ...frames] = stack.split(folder);
    const places = frames.map((frame) => placeInFile.exec(frame)?.[0] ?? '');
    learn([...new Set(places)].filter((place) => place !== '' && !known.has(place)));
    const shown = frames.map((frame, index) => {
      const place = places[index] ?? '';
      return `${known.get(place) ?? folder}${frame.slice(place.length)}`;
    });
    return before + shown.join('');
  };
}

/** @returns by place, such as `chunk.js:1:20`: the place in its source; only those that the map has */
function originsOf(map: URL, texts: readonly string[]): ReadonlyMap<string, string> {
  const origins = new Map<string, string>();
  try {
    const { mappings, sources } = JSON.parse(readFileSync(map, 'utf8')) as SourceMap;
    const places = texts.map(placeOf);
    scanMappings(mappings, places);
    for (const [index, { origin }] of places.entries()) {
      if (origin === undefined) continue;
      const [source, line, column] = origin;
      const file = (sources[source] ?? '').replace(parents, '');
      origins.set(texts[index] ?? '', `${file}:${line + 1}:${column + 1}`);
    }
  } catch {
    // The map is not there, or was replaced while it was read: the stack names the place in the bundle.
  }
  return origins;
}

type SourceMap = { readonly mappings: string; readonly sources: readonly string[] };

const parents = /^(?:\.\.\/)+/;

function placeOf(text: string): Place {
  const [line = 1, column = 1] = text.split(':').slice(1).map(Number);
  return { line: line - 1, column: column - 1 };
}

const base64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const values = Int8Array.from({ length: 128 }, (_, code) => base64.indexOf(String.fromCharCode(code)));
const comma = 44;
const semicolon = 59;

/** One pass over the mappings (ECMA-426 §9.2); each place gets the origin of the last segment of its line that begins before it. */
function scanMappings(mappings: string, places: readonly Place[]): void {
  const byLine = Map.groupBy(places, ({ line }) => line);
  // Column in the bundle, source, line, column, name: each number is relative to the one before.
  const segment = [0, 0, 0, 0, 0] as [number, number, number, number, number];
  let line = 0;
  let [field, value, shift] = [0, 0, 0];
  for (let at = 0; at <= mappings.length; at += 1) {
    const code = at === mappings.length ? semicolon : mappings.charCodeAt(at);
    if (code !== comma && code !== semicolon) {
      const digit = values[code] ?? 0;
      value |= (digit & 31) << shift;
      shift += 5;
      if (digit & 32) continue;
      segment[field] = (segment[field] ?? 0) + (value & 1 ? -(value >>> 1) : value >>> 1);
      field += 1;
      [value, shift] = [0, 0];
      continue;
    }
    for (const place of byLine.get(line) ?? []) {
      if (field >= 4 && segment[0] <= place.column) place.origin = [segment[1], segment[2], segment[3]];
    }
    field = 0;
    if (code === semicolon) {
      line += 1;
      segment[0] = 0;
    }
  }
}
