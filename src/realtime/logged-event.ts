/**
 * An event of the log on its way to many sockets: each member that a rule reads is parsed once, and one frame serves
 * every socket that may see the whole event. Positions in the log are ordered by revision, then by id as stores compare
 * it: by code point.
 */
import { valueAt } from '../http/syntax/json-members.ts';
import type { Field } from '../model/field.ts';
import { compareText, type Matchable } from '../model/matches.ts';
import type { LogPosition, TailEntry } from '../store/store.ts';
import { eventFrame } from './frames.ts';

export class LoggedEvent implements Matchable {
  readonly entry: TailEntry;
  readonly position: LogPosition;
  readonly search = null;
  readonly #values = new Map<string, unknown>();
  #frame: Buffer | undefined;

  constructor(entry: TailEntry) {
    this.entry = entry;
    this.position = { rev: entry.rev, id: entry.id };
  }

  value(field: Field): unknown {
    switch (field.column) {
      case 'id':
      case 'type':
      case 'collection':
      case 'owner':
        return this.entry[field.column];
      case 'rev':
        return this.entry.rev;
      default:
        return this.#valueAt(field.path);
    }
  }

  /** Caches members, since the rules of many readers use the same few. */
  #valueAt(path: readonly string[]): unknown {
    const key = path.join('\0');
    if (!this.#values.has(key)) this.#values.set(key, valueAt(this.entry.doc, path));
    return this.#values.get(key);
  }

  /** The frame of the whole event, as UTF-8. */
  get frame(): Buffer {
    this.#frame ??= Buffer.from(eventFrame(this.entry.doc));
    return this.#frame;
  }
}

/** Before every event. */
export const beginning: LogPosition = { rev: 0, id: '' };

/** Negative, 0 or positive. */
function comparePositions(one: LogPosition, other: LogPosition): number {
  return one.rev === other.rev ? compareText(one.id, other.id) : one.rev - other.rev;
}

export function isAfter(one: LogPosition, other: LogPosition): boolean {
  return comparePositions(one, other) > 0;
}

export function laterOf(one: LogPosition, other: LogPosition): LogPosition {
  return isAfter(one, other) ? one : other;
}
