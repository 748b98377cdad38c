/** What a walk begins with: what is settled already, and who asks. */
import type { Allowance } from '../http/allowance.ts';
import type { Request } from '../http/message.ts';
import { anonymous, type Principal } from '../model/principal.ts';
import type { MaybePromise } from '../store/store.ts';
import type { MessageReading } from './message-facts.ts';
import type { Companion, Identified } from './resource.ts';
import type { Room } from './room.ts';

/** What is settled before the walk begins. */
export type Before = {
  /** Of a stored request, which was authenticated and counted when it came. */
  readonly principal?: Principal;
  readonly companions?: readonly Companion[];
  /** The request was counted by a walk that begins again. */
  readonly allowance?: Allowance | undefined;
};

const nobody: Identified = { principal: anonymous };

export function identify(room: Room, request: Request, reading: MessageReading): MaybePromise<Identified> {
  const resource = reading.route?.resource;
  if (resource?.ignoresCredentials === true) return nobody;
  if (resource?.identify !== undefined) return resource.identify(request, reading.query, room.authenticate);
  return room.authenticate(request, reading.query);
}
