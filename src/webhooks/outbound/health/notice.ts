/** What the owner of an endpoint is told of it, by whatever way. */
import type { DisabledReason, Endpoint } from '../../../model/endpoint.ts';

export type EndpointNotice = {
  readonly kind: 'failing' | 'disabled';
  readonly endpoint: Endpoint;
  readonly owner: string | null;
  /** Milliseconds since the epoch: of the first failure after the last success, or of the 410. */
  readonly since: number;
  readonly reason: DisabledReason;
};

/** May reject; the sender goes on. */
export type Notify = (notice: EndpointNotice) => Promise<void>;
