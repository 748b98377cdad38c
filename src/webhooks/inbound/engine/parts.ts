/** What the engine is made with, and what its parts share. */
import type { DeclaredSender } from '../../../config/senders.ts';
import type { Settings } from '../../../config/settings.ts';
import type { Observe } from '../../../observe/observation.ts';
import type { Store } from '../../../store/store.ts';
import type { Alarm } from '../../outbound/engine/alarm.ts';
import type { Timers } from '../../outbound/engine/timers.ts';
import type { Turns } from '../../outbound/engine/turns.ts';
import type { Lanes } from '../../outbound/lanes.ts';
import type { HandOn } from '../hand-on.ts';
import type { SettleHandedOn } from '../settle/settle.ts';
import type { Due, SenderQueue } from './sender-queue.ts';
import type { Shares } from './shares.ts';

export type HandingOnSettings = Pick<
  Settings,
  | 'handOnInFlightMax'
  | 'senderInFlightDefault'
  | 'webhookBreakerFailuresMax'
  | 'webhookBreakerSeconds'
  | 'webhookBreakerSecondsMax'
>;

export type HandingOnOptions = {
  /** Whose commits add deliveries: what handlers write is announced. */
  readonly store: Pick<Store, 'plan' | 'read' | 'commit' | 'onChange' | 'lines'>;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  readonly lanes: Pick<Lanes, 'owns' | 'need' | 'hold' | 'release' | 'onChange'>;
  /** Who messages of the sender are handed to; undefined: nobody, they wait to be marked. Asked once for each sender. */
  readonly handOnOf: (sender: DeclaredSender) => HandOn | undefined;
  /** Milliseconds since the epoch: what messages are due by. */
  readonly clock: () => number;
  /** Uniformly from 0 to 1. */
  readonly random: () => number;
  readonly timers?: Timers;
  readonly settings: HandingOnSettings;
  readonly observe: Observe;
};

/** One message that is being handed on. */
export type Attempt = {
  readonly queue: SenderQueue;
  readonly due: Due;
  /** Whether the breaker lets no other begin before its end. */
  readonly probe: boolean;
};

/** What the parts of the engine share. */
export type EngineParts = HandingOnOptions & {
  readonly timers: Timers;
  readonly shares: Shares;
  readonly alarm: Alarm;
  /** Those that others' shares hold back. */
  readonly held: Set<SenderQueue>;
  readonly turns: Turns<SenderQueue>;
  readonly settle: SettleHandedOn;
  /** It may be able to begin something: gives it a turn. */
  readonly ready: (queue: SenderQueue) => void;
  /** Reads what is due; true where it is there already. */
  readonly read: (queue: SenderQueue) => boolean;
  readonly start: (attempt: Attempt) => void;
  /** Aborted when what is under way is given up. */
  readonly running: AbortSignal;
  /** Aborted when nobody waits for the store any longer. */
  readonly settling: AbortSignal;
};
