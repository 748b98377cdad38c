/**
 * One event of the log on its way to many sockets: parsed once, where a rule looks into it, and its frame made once for all who see the
 * whole of it.
 */
import type { Field } from '../../model/field.ts';
import { type Matchable, memberAt } from '../../model/matches.ts';
import type { LogPosition, TailEntry } from '../../store/store.ts';
import { eventFrame } from './frames.ts';

export class LoggedEvent implements Matchable {
  readonly entry: TailEntry;
  readonly position: LogPosition;
  readonly search = null;
  #parsed: unknown;
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
        this.#parsed ??= JSON.parse(this.entry.doc);
        return memberAt(this.#parsed, field.path);
    }
  }

  /** For whoever sees all there is in it, as UTF-8. */
  get frame(): Buffer {
    this.#frame ??= Buffer.from(eventFrame(this.entry.doc));
    return this.#frame;
  }
}
