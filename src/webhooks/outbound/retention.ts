/**
 * How long the sender keeps what it wrote down. Rows count from their last change; a payload is a row of the event log and has its own
 * setting. A delivery whose event is gone is concluded as expunged when it would be tried again.
 */
import type { Settings } from '../../config/settings.ts';
import type { RetentionRule } from '../../store/retention.ts';
import { deliveriesCollection, recoveriesCollection } from './collections.ts';
import { attemptsTable, wakesTable } from './tables.ts';

/** Other processes hear of a wake within seconds; later they look by themselves. */
const wakeSeconds = 60;
const recoverySeconds = 30 * 86_400;

export function outboundRetention({
  deliveryRetentionSeconds,
}: Pick<Settings, 'deliveryRetentionSeconds'>): readonly RetentionRule[] {
  return [
    { table: deliveriesCollection.name, seconds: deliveryRetentionSeconds },
    { table: attemptsTable, seconds: deliveryRetentionSeconds },
    { table: wakesTable, seconds: wakeSeconds },
    { table: recoveriesCollection.name, seconds: recoverySeconds },
  ];
}
