/** Ids that a client or a function chooses: how they are written, and which of them no document can have (§2.1). */
import type { Collection } from '../../model/collection.ts';
import { isClientId } from '../../model/id.ts';

export const idMessage = 'an id has 1 to 255 letters, digits, ".", "_", "~" or "-"';

/** The reason why no document can be created with the id. A document with the name of an operation could not be addressed. */
export function idFault({ takenIds }: Pick<Collection, 'takenIds'>, id: string): string | undefined {
  if (!isClientId(id)) return idMessage;
  if (!takenIds.includes(id)) return undefined;
  return `"${id}" cannot be an id, because it is the path of an operation of the collection: ${takenIds.join(', ')}`;
}
