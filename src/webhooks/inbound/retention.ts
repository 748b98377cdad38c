/**
 * How long the receiver keeps what it wrote down (§4.14): messages and their attempts from their last change, contents from when they came,
 * because rows of contents never change. A message whose content is gone can be read and marked, and not be handed on any more.
 */
import type { Settings } from '../../config/settings.ts';
import type { RetentionRule } from '../../store/retention.ts';
import { receivedCollection } from './collections.ts';
import { receivedAttemptsTable, receivedContentsTable } from './tables.ts';

export function inboundRetention({
  receivedRetentionSeconds,
}: Pick<Settings, 'receivedRetentionSeconds'>): readonly RetentionRule[] {
  return [receivedCollection.name, receivedAttemptsTable, receivedContentsTable].map((table) => ({
    table,
    seconds: receivedRetentionSeconds,
  }));
}
