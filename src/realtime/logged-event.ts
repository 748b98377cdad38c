/**
 * An event of the log on its way to many sockets: each member that a rule reads is parsed once, and one frame serves
 * every socket that may see the whole event. Positions in the log are ordered by revision, then by id as stores compare
 * it: by code point.
 */
import { type Cause, type CauseShown, causeOf, withCauseShown } from '../model/actor.ts';
import type { Field } from '../model/field.ts';
import type { Matchable } from '../model/matches.ts';
import { leftText, valueOfEvent } from '../resources/events/leaving.ts';
import type { LogPosition, TailEntry } from '../store/store.ts';
import { eventFrame } from './frames.ts';

export class LoggedEvent implements Matchable {
  readonly entry: TailEntry;
  readonly position: LogPosition;
  readonly search = null;
  readonly #values = new Map<string, unknown>();
  readonly #shown = new Map<CauseShown, Shown>();
  #left: Buffer | undefined;
  #cause: Cause | undefined | null = null;

  constructor(entry: TailEntry) {
    this.entry = entry;
    this.position = { rev: entry.rev, id: entry.id };
  }

  readonly value = (field: Field): unknown =>
    field.column === undefined ? this.#valueAt(field) : valueOfEvent(this.entry, field);

  /** Caches members, since the rules of many readers use the same few. */
  #valueAt(field: Field): unknown {
    const key = `${field.within ?? ''}\0${field.path.join('\0')}`;
    if (!this.#values.has(key)) this.#values.set(key, valueOfEvent(this.entry, field));
    return this.#values.get(key);
  }

  /** The frame for those whom the document has left. */
  get left(): Buffer {
    this.#left ??= Buffer.from(leftText(this.entry));
    return this.#left;
  }

  /** Parsed once for all readers. */
  get cause(): Cause | undefined {
    if (this.#cause === null) this.#cause = causeOf(this.entry.doc);
    return this.#cause;
  }

  /** The event with so much of its cause, made once for all readers to whom it shows that. */
  shown(much: CauseShown): Shown {
    let shown = this.#shown.get(much);
    if (shown === undefined) {
      const { cause } = this;
      const doc = cause === undefined ? this.entry.doc : withCauseShown(this.entry.doc, cause, much);
      shown = { doc, frame: Buffer.from(eventFrame(doc)) };
      this.#shown.set(much, shown);
    }
    return shown;
  }
}

type Shown = {
  readonly doc: string;
  /** As UTF-8. */
  readonly frame: Buffer;
};

/** Before every event. */
export const beginning: LogPosition = { rev: 0, id: '' };
