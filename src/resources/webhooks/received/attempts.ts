/** `/received/{id}/attempts`: how handing the message on was tried and what came of it, oldest first. */

import { idField } from '../../../model/field.ts';
import { byId } from '../../../model/filter.ts';
import type { MaybePromise } from '../../../store/store.ts';
import { whenKnown } from '../../../store/when-known.ts';
import { receivedAttemptsTable } from '../../../webhooks/inbound/tables.ts';
import type { Served } from '../../collection/served.ts';
import type { Resource } from '../../resource.ts';
import { type AttemptsAsked, type AttemptsPage, attemptsResource } from '../attempts/resource.ts';

/** Of the number in an id, so that ids are in the order of the numbers (webhooks/inbound/tables.ts). */
const numberDigits = 6;

export function receivedAttemptsResource(served: Served, limitMax: number): Resource {
  return attemptsResource(served, limitMax, (id, asked) => attemptsOf(served, id, asked));
}

function attemptsOf(
  { store, pageBytesMax }: Pick<Served, 'store' | 'pageBytesMax'>,
  id: string,
  { afterNumber, limit }: AttemptsAsked,
): MaybePromise<AttemptsPage> {
  const after = `${id}/${String(afterNumber).padStart(numberDigits, '0')}`;
  const plan = store.plan({
    table: receivedAttemptsTable,
    filter: {
      op: 'and',
      filters: [
        { op: 'gt', field: idField, value: after },
        // The digit after the slash in order of code points is 0, so this ends what begins with the id and a slash.
        { op: 'lt', field: idField, value: `${id}0` },
      ],
    },
    sort: byId,
    limit,
    bytesMax: pageBytesMax,
  });
  return whenKnown(plan.page({ from: 'start' }), ({ docs, more }) => ({ docs, more }));
}
